"""An explanation as a page to look at: one file that needs no network."""

import json
import re
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

from pyramidions.inference.explanation import Explanation, LayerTrace

#: tokens of the document that the page names for a word, the strongest ones
TOKENS_A_WORD = 64
# Thai, Lao, Burmese, Khmer, kana, Chinese characters.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff]")


def html_page(explanation: Explanation, name: str) -> str:
    """Return a page in HTML.

    Beside the document, each token shaded by how much of it is left after a layer, stands the summary; a word of it
    shows the tokens that it drew on. Shares of tokens are rounded to thousandths, those of attention to
    hundred-thousandths.

    Args:
        explanation: what to show.
        name: of the document, its heading.
    """
    page = files("pyramidions.inference").joinpath("explanation_page.html").read_text(encoding="utf-8")
    text = json.dumps(_data(explanation, name), ensure_ascii=False, separators=(",", ":"))
    # Nothing in a document may end the script element that holds it.
    return page.replace("@DATA@", text.replace("<", "\\u003c"), 1)


def _data(explanation: Explanation, name: str) -> dict[str, Any]:
    # Layers that do not pool hand on what they received: each list of shares is written once.
    reached: list[list[int]] = []
    last: Tensor | None = None
    layers = []
    for layer in explanation.trace.layers:
        if layer.reached is not None and (last is None or not torch.equal(last, layer.reached)):
            reached.append(_rounded(layer.reached.clamp(min=0), 1000))
        last = layer.reached
        layers.append(_layer(layer, None if last is None else len(reached) - 1))
    return {
        "name": name,
        "tokens": explanation.summary.document_tokens,
        "read": explanation.summary.read_tokens,
        "document": explanation.document,
        "layers": layers,
        "reached": reached,
        "traced": explanation.trace.attention is not None and explanation.trace.provenance is not None,
        "words": [_word(explanation, start, end) for start, end in words(explanation.written)],
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
    word: dict[str, Any] = {"text": "".join(explanation.written[start:end]), "drew": None}
    shares = explanation.drew_on(start, end)
    if shares is None:
        return word
    # Of equal shares the earlier token comes first.
    best = shares.argsort(descending=True, stable=True)[:TOKENS_A_WORD]
    best = best[shares[best] > 0]
    if len(best):
        word["drew"] = {
            "tokens": best.tolist(),
            "shares": _rounded(shares[best], 100_000),
            "covered": round(float(shares[best].sum()), 5),
        }
    return word


def _rounded(shares: Tensor, parts: int) -> list[int]:
    rounded: list[int] = (shares * parts).round().int().tolist()
    return rounded
