"""Shows explanations on an HTML page: one file that needs no network."""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, groupby
from typing import Any, NamedTuple

from torch import Tensor

from pyramidions.base.arguments import CountOrZero, checked
from pyramidions.inference.explanation import Explanation, LayerTrace
from pyramidions.inference.summary import Summary
from pyramidions.pages.page import MOST, Document, DocumentPage, Item, Kind, Layer, Link, sentence_of, supported_by
from pyramidions.text.normalization import UNSPACED

#: document tokens that the page lists for each word of the summary, those with the largest shares
TOKENS_A_WORD = 64
#: most tokens of a document on a page that browsers draw at once
MOST_TOKENS = 2**18
#: how likely a word must be copied to count as copied
_LEAST_COPIED = 0.005
_UNSPACED = re.compile(f"[{UNSPACED}]")
_KIND: Kind = {
    "layout": "words",
    "title": "Documents and their summaries",
    "unit": "token",
    "heading": "Summary",
    "table": "Layer by layer",
    "chart": "How much is left along the document, and where the attention of a word goes",
    "caption": "left of a token (mean)",
    "help": "Tap or point at a word, or move with the arrow keys, to see what it drew on. A click or Enter keeps it "
    "and goes to the strongest token; Escape or another click lets it go. A click on a token names the words that drew "
    "on it.",
    "legend": [
        (0.25, "a sixteenth", "alone"),
        (0.5, "a quarter", "alone"),
        (1.0, "all of a token is left", "alone"),
        ("linked", "a summary word drew on it"),
        ("ours", "more is left for this query", "compared"),
        ("theirs", "more is left for the other query", "compared"),
        ("global", "global: it sees all tokens, and all see it", "global"),
        ("", "¶ marks the end and, in some vocabularies, sentences"),
    ],
    "figure": "Blue: how much is left of a token.",
    "how": "Followed are the vectors that pooling selects and mixes, and the decoder's attention to them (mean of its "
    "layers and heads). The encoder's attention mixes tokens, too, and is not followed: a vector may know more than "
    "the tokens that it is made of.",
    "gamma": 0.5,
}


class ExplanationPage(DocumentPage):
    """A page of documents and their summaries, gathered one by one.

    Beside a document, each token shaded by how much of it is left after a layer, stands the summary; a word of it
    shows the tokens that it drew on. Shares of tokens are rounded to thousandths, those of attention to
    hundred-thousandths.

    Args:
        model: what to call the model.
        most: bytes of all documents; a document that does not fit, or has more than `MOST_TOKENS`, is on the page with
            the pieces that do.
    """

    most_of_one = f"{MOST_TOKENS:,} tokens"

    @checked
    def __init__(self, model: str = "", most: CountOrZero = MOST) -> None:
        super().__init__(_KIND, {"model": model} if model else {}, most)

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
        kept: list[_Piece] = []
        summaries: list[Summary] = []
        tokens = reserved = 0
        for explanation in explanations:
            summaries.append(explanation.summary)
            if len(kept) < len(summaries) - 1:
                continue
            self.settings |= explanation.settings
            piece = _piece(explanation, tokens)
            tokens += len(explanation.document)
            # What no layer changes is written once.
            written = piece.shown, [values for values, _ in groupby(piece.reached)]
            if tokens <= MOST_TOKENS and (size := self.reserve(written)):
                kept.append(piece)
                reserved += size
        self.left_out += len(kept) < len(summaries)
        if kept:
            self.keep(_joined(name, query, kept, len(summaries)), reserved)
        return summaries


@checked
def html_page(explanation: Explanation, name: str, model: str = "") -> str:
    """Return the page of a single document that was read in one go (`ExplanationPage`), by its name and the model's."""
    page = ExplanationPage(model)
    page.add(name, [explanation], explanation.summary.query)
    return page.html()


class _Piece(NamedTuple):
    """A document that was read in one go, or a piece of one, without the tensors that its page needs no more."""

    shown: dict[str, Any]  #: places are counted from the beginning of the document
    summary: Summary
    layers: list[LayerTrace]
    reached: list[list[int] | None]  #: after each layer, what is left of each token, in thousandths, if known
    memories: list[tuple[int | None, int, bool]]  #: that the decoder reads: layer, vectors, and whether it is traced


def _piece(explanation: Explanation, start: int) -> _Piece:
    """Return a piece behind ``start`` tokens of the document."""
    trace, asked = explanation.trace, explanation.asked
    texts = list(enumerate(explanation.document))
    shown: dict[str, Any] = {
        # The end of a query is the end of its paragraph.
        "segments": [text or ("" if place < asked else " ¶") for place, text in texts],
        "blocks": [
            ("query" if place < asked else "p", start + place, "")
            for place, text in texts
            if place in (0, asked) or text.startswith("\n\n")
        ],
        "ends": [start + place for place, text in texts if not text and place >= asked],
        "global": [] if trace.seen_by_all is None else (trace.seen_by_all.nonzero()[:, 0] + start).tolist(),
        "items": [_item(explanation, *place, start) for place in words(explanation.written)],
        "sentences": [],
    }
    for sentence in explanation.sentences:
        supported = sentence_of(sentence, start)
        attention = "unknown" if sentence.by_attention is None else "where most of it went"
        supported["support"].append(supported_by(f"By attention: {attention}", sentence.by_attention or (), start))
        shown["sentences"].append(supported)
    reached = [None if layer.reached is None else _rounded(layer.reached.clamp(min=0), 1000) for layer in trace.layers]
    memories = [(each.layer, each.vectors, each.is_traced) for each in trace.memories]
    return _Piece(shown, explanation.summary, trace.layers, reached, memories)


def _joined(name: str, query: str | None, pieces: Sequence[_Piece], all_pieces: int) -> Document:

    def of_all(key: str) -> list[Any]:
        return [each for piece in pieces for each in piece.shown[key]]

    titles = [f"Piece {number} of {all_pieces}" for number in range(1, len(pieces) + 1)] if len(pieces) > 1 else []
    starts = [piece.shown["blocks"][0][1] for piece in pieces]
    items = accumulate((len(piece.shown["items"]) for piece in pieces), initial=0)
    blocks = [*(("h2", start, title) for start, title in zip(starts, titles, strict=False)), *of_all("blocks")]
    memories = list(zip(*(piece.memories for piece in pieces), strict=True))
    traced = [all(is_traced for _, _, is_traced in of_memory) for of_memory in memories]
    views = [_view(of_memory[0][0], sum(vectors for _, vectors, _ in of_memory)) for of_memory in memories]
    read = "all that the decoder reads (mean)"
    if len(views) == 1:
        read, views = views[0], []
    copied = ["the tokens it was copied from"] if all(piece.summary.copied is not None for piece in pieces) else []
    return {
        "name": name,
        "query": query,
        "about": _about(pieces, all_pieces, query is not None),
        "segments": of_all("segments"),
        # A heading comes before the paragraph that begins where it does.
        "blocks": sorted(blocks, key=lambda block: (block[1], block[0])),
        "marks": {"mark": of_all("ends"), "global": of_all("global")},
        "items": of_all("items"),
        "parts": list(zip(titles, items, strict=False)),
        "views": [read, *views, *copied] if views or copied else [],
        "known": [all(traced), *traced[: len(views)], *(True for _ in copied)],
        "copied": len(views) + 1 if copied else None,
        "sentences": of_all("sentences"),
        **_layers(pieces),
    }


def _layers(pieces: Sequence[_Piece]) -> Document:
    shades: list[list[int]] = []
    stops: list[Layer] = [
        {"label": f"The input: {_vectors(sum(piece.summary.read_tokens for piece in pieces))}", "shades": "all"}
    ]
    rows = []
    for number, layers in enumerate(zip(*(piece.layers for piece in pieces), strict=True), 1):
        received, handed_on = (sum(getattr(layer, key) for layer in layers) for key in ("received", "handed_on"))
        sharpness = _mean((layer.sharpness, layer.handed_on) for layer in layers)
        half = _mean((layer.share_for_half, layer.received) for layer in layers)
        kept = f"{handed_on / received:.1%}"
        rows.append([str(number), f"{received:,}", f"{handed_on:,}", kept, sharpness, half])
        reached = [piece.reached[number - 1] for piece in pieces]
        values = [value for of_piece in reached for value in of_piece or ()]
        # Layers that do not pool repeat the shares of the layer before: each list is written once.
        if None not in reached and shades[-1:] != [values]:
            shades.append(values)
        label = f"After layer {number} of {len(pieces[0].layers)}: {_vectors(handed_on)}"
        stops.append({"label": label, "shades": None if None in reached else len(shades) - 1})
    head = ["layer", "vectors in", "handed on", "kept", "strongest in each", "tokens that make up half"]
    return {"shades": shades, "layers": stops, "table": {"head": head, "rows": rows}}


def _view(layer: int | None, vectors: int) -> str:
    name = "the encoder's output" if layer is None else f"layer {layer}"
    return f"{name} ({_vectors(vectors)})"


def _about(pieces: Sequence[_Piece], all_pieces: int, has_query: bool) -> str:
    if len(pieces) < all_pieces:
        return f"The first {len(pieces)} of {all_pieces} pieces are shown: the page is full."
    tokens, read = (sum(getattr(x.summary, f"{key}_tokens") for x in pieces) for key in ("document", "read"))
    coverages = [piece.summary.coverage for piece in pieces]
    tokens += sum(coverage.left_out for coverage in coverages)
    selected = [coverage for coverage in coverages if coverage.sentences is not None]
    about = f"The first {read:,} of {tokens:,} tokens were read; the rest was cut off."
    if selected:
        kept, of = (sum(each.sentences[i] for each in selected if each.sentences) for i in (0, 1))
        about = f"{kept:,} of {of:,} sentences, selected by {selected[0].selected_by}, were read; only these are shown."
    elif read < tokens and any(coverage.heading is not None for coverage in coverages):
        about = f"{read:,} of {tokens:,} tokens were read, in these sections."
    elif read == tokens:
        how = f", in {len(pieces)} pieces that were summarized one by one" if len(pieces) > 1 else ""
        about = f"All {tokens:,} tokens were read{how}."
    return f"{about}{' Those of the query are among them.' if has_query else ''}"


def _vectors(count: int) -> str:
    return f"{count:,} vector{'' if count == 1 else 's'}"


def _mean(weighted: Iterable[tuple[float | None, int]]) -> str:
    known = [(value, weight) for value, weight in weighted if value is not None]
    total = sum(weight for _, weight in known)
    return f"{sum(value * weight for value, weight in known) / total:.1%}" if total else "–"


def words(written: list[str]) -> list[tuple[int, int]]:
    """Return where words start and end: a space begins one, and so does any token in a script without spaces."""
    found: list[tuple[int, int]] = []
    for index, text in enumerate(written):
        begins = text.startswith(" ") or _UNSPACED.match(text)
        if found and found[-1][1] == index and text and not begins:
            found[-1] = found[-1][0], index + 1
        elif text:
            found.append((index, index + 1))
    return [(start, end) for start, end in found if "".join(written[start:end]).strip()]


def _item(explanation: Explanation, begin: int, end: int, start: int) -> Item:
    memories = [None, *(range(len(explanation.trace.memories)) if explanation.trace.further else ())]
    links = [_link(explanation.drew_on(begin, end, memory), start) for memory in memories]
    if explanation.trace.copied is not None:
        links.append(_link(explanation.copied(begin, end), start, _LEAST_COPIED))
    return {"text": "".join(explanation.written[begin:end]), "links": links}


def _link(shares: Tensor | None, start: int, least: float = 0.0) -> Link | None:
    """Return the tokens with the largest shares; None where shares are unknown, or sum to ``least`` or less."""
    if shares is None or float(shares.sum()) <= least:
        return None
    # Of equal shares the earlier token comes first.
    best = shares.argsort(descending=True, stable=True)[:TOKENS_A_WORD]
    best = best[shares[best] > 0]
    return {
        "to": (best + start).tolist(),
        "shares": _rounded(shares[best], 100_000),
        "covered": round(float(shares[best].sum()), 5),
        "whole": round(float(shares.sum()), 5),
    }


def _rounded(shares: Tensor, parts: int) -> list[int]:
    return (shares * parts).round().int().tolist()
