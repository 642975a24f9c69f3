"""Shows explanations on an HTML page: one file that needs no network."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from pyramidions.base.arguments import CountOrZero, checked
from pyramidions.inference.document_page import DocumentPage
from pyramidions.inference.explanation import Explanation, LayerTrace
from pyramidions.inference.summary import Summary
from pyramidions.inference.supported_sentences import SummarySentence, Supporting
from pyramidions.pages.frame import MOST, as_json
from pyramidions.text.words import UNSPACED

#: document tokens that the page lists for each word of the summary, those with the largest shares
TOKENS_A_WORD = 64
#: most tokens of a document on a page that browsers draw at once
MOST_TOKENS = 2**18
_PARTS = ("explanation_comparison", "explanation_memories", "explanation_support")
_UNSPACED = re.compile(f"[{UNSPACED}]")


class ExplanationPage:
    """A page of documents and their summaries, gathered one by one.

    Beside a document, each token shaded by how much of it is left after a layer, stands the summary; a word of it
    shows the tokens that it drew on. Shares of tokens are rounded to thousandths, those of attention to
    hundred-thousandths.

    Args:
        model: what to call the model.
        most: bytes of all documents; a document that does not fit, or has more than `MOST_TOKENS`, is on the page with
            the pieces that do.
    """

    @checked
    def __init__(self, model: str = "", most: CountOrZero = MOST) -> None:
        self._model = model
        self._page = DocumentPage("explanation_page", most, _PARTS)
        self._settings: dict[str, str] = {}

    @property
    def left_out(self) -> int:
        """The number of documents that are not on the page, or not to their end."""
        return self._page.left_out

    @checked
    def add(self, name: str, explanations: Iterable[Explanation], query: str | None = None) -> list[Summary]:
        """Add a document.

        Args:
            name: of the document, its heading.
            explanations: of its pieces in order; of a document that was read in one go, a single one.
            query: what its summary answers. Entries of one name with different queries can be compared on the page.

        Returns:
            The summaries of all pieces, of those that are left out as well.
        """
        kept: list[str] = []
        summaries: list[Summary] = []
        tokens = 0
        for explanation in explanations:
            summaries.append(explanation.summary)
            if len(kept) < len(summaries) - 1:
                continue
            self._settings = self._settings or dict(explanation.settings)
            piece = as_json(_piece(explanation))
            tokens += len(explanation.document)
            if tokens <= MOST_TOKENS and self._page.reserve(piece):
                kept.append(piece)
        missing = len(summaries) - len(kept)
        self._page.left_out += missing > 0
        if kept:
            asked = {} if query is None else {"query": query}
            about = as_json({"name": name, "missing": missing, **asked})
            self._page.add(f'{about[:-1]},"pieces":[{",".join(kept)}]}}')
        return summaries

    def html(self) -> str:
        """Return the page: one file that needs no network."""
        named = {"model": self._model} if self._model else {}
        return self._page.html({"settings": {**named, **self._settings}})


@checked
def html_page(explanation: Explanation, name: str, model: str = "") -> str:
    """Return the page of a single document that was read in one go (`ExplanationPage`).

    Args:
        explanation: what to show.
        name: of the document, its heading.
        model: what to call the model.
    """
    page = ExplanationPage(model)
    page.add(name, [explanation], explanation.summary.query)
    return page.html()


def _piece(explanation: Explanation) -> dict[str, Any]:
    # Layers that do not pool repeat the shares of the layer before: each list is written once.
    reached: list[list[int]] = []
    last: Tensor | None = None
    layers = []
    for layer in explanation.trace.layers:
        if layer.reached is not None and (last is None or not torch.equal(last, layer.reached)):
            reached.append(_rounded(layer.reached.clamp(min=0), 1000))
        last = layer.reached
        layers.append(_layer(layer, None if last is None else len(reached) - 1))
    traced = explanation.trace
    memories = [{"layer": each.layer, "vectors": each.vectors, "traced": each.is_traced} for each in traced.memories]
    seen = traced.seen_by_all
    return {
        "tokens": explanation.summary.document_tokens,
        "read": explanation.summary.read_tokens,
        "asked": explanation.asked,
        "document": explanation.document,
        "layers": layers,
        "reached": reached,
        "traced": all(memory.is_traced for memory in traced.memories),
        **({"memories": memories} if traced.further else {}),
        **({} if seen is None else {"seen_by_all": seen.nonzero()[:, 0].tolist()}),
        "sentences": [_sentence(sentence) for sentence in explanation.sentences],
        "words": [_word(explanation, start, end) for start, end in words(explanation.written)],
    }


def _sentence(sentence: SummarySentence) -> dict[str, Any]:
    def places(supporting: Sequence[Supporting]) -> list[tuple[int, int, float]]:
        return [(each.start, each.end, round(each.share, 4)) for each in supporting]

    return {
        "text": sentence.text,
        "recall": sentence.recall,
        "enough": sentence.is_supported,
        "by_words": places(sentence.by_words),
        "by_attention": None if sentence.by_attention is None else places(sentence.by_attention),
    }


def _layer(layer: LayerTrace, reached: int | None) -> dict[str, Any]:
    return {
        "received": layer.received,
        "handed_on": layer.handed_on,
        "sharpness": layer.sharpness,
        "share_for_half": layer.share_for_half,
        "reached": reached,
    }


def words(written: list[str]) -> list[tuple[int, int]]:
    """Return where the words of a summary start and end, given the text of its tokens.

    A space begins a word; so does any token in a script that writes no spaces.
    """
    found: list[tuple[int, int]] = []
    for index, text in enumerate(written):
        begins = text.startswith(" ") or _UNSPACED.match(text)
        if found and found[-1][1] == index and text and not begins:
            found[-1] = found[-1][0], index + 1
        elif text:
            found.append((index, index + 1))
    return [(start, end) for start, end in found if "".join(written[start:end]).strip()]


def _word(explanation: Explanation, start: int, end: int) -> dict[str, Any]:
    text = "".join(explanation.written[start:end])
    word: dict[str, Any] = {"text": text, "drew": _drew(explanation.drew_on(start, end))}
    if explanation.trace.further:
        memories = range(len(explanation.trace.memories))
        word["drew_on_each"] = [_drew(explanation.drew_on(start, end, memory)) for memory in memories]
    return word


def _drew(shares: Tensor | None) -> dict[str, Any] | None:
    """Return the tokens with the largest shares; None where shares are unknown, or all zero."""
    if shares is None:
        return None
    # Of equal shares the earlier token comes first.
    best = shares.argsort(descending=True, stable=True)[:TOKENS_A_WORD]
    best = best[shares[best] > 0]
    if not len(best):
        return None
    return {
        "tokens": best.tolist(),
        "shares": _rounded(shares[best], 100_000),
        "covered": round(float(shares[best].sum()), 5),
    }


def _rounded(shares: Tensor, parts: int) -> list[int]:
    rounded: list[int] = (shares * parts).round().int().tolist()
    return rounded
