"""Shows segments on an HTML page: one file that needs no network."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from pyramidions.base.arguments import CountOrZero, checked
from pyramidions.inference.segmenter import SegmentedText
from pyramidions.pages.page import MOST, Document, DocumentPage, Kind

#: most characters of a text on a page that browsers draw at once
MOST_CHARACTERS = 2**18
#: characters of a text that have a bar: each is an element of its own
MOST_BITS = 2**16
#: segments that the page lists with their counts
FREQUENT = 60
#: characters of a paragraph
_BLOCK = 1200
#: bars of the chart; the last one counts longer segments, too
_LONGEST = 24
#: thousandths below which a probability has no shade
_FAINT = 20
_KIND: Kind = {
    "layout": "segments",
    "title": "Segments of texts",
    "unit": "character",
    "heading": "Most frequent segments",
    "chart": "How many segments have how many characters",
    "caption": "segments",
    "help": "Choose a segment, in the text or among the most frequent ones, to see where else it stands. Arrow keys go "
    "to the next one in the text, Escape lets it go.",
    "legend": [
        ("end", "a segment ends"),
        (0.1, "probability of a boundary: 10%", "predicted"),
        (0.5, "50%", "predicted"),
        (1.0, "100%", "predicted"),
        ("", "This kind of boundaries has no probabilities.", "unpredicted"),
        ("entropy", "below a character: entropy of its prediction, a full bar at 5 bits", "entropic"),
        ("", "Numbers in the margin count characters.", "wide"),
    ],
    "figure": "Bars: a segment ends. Blue: the more probable a boundary, the darker. Violet, if any: entropy of the "
    "prediction of each character, a full bar at 5 bits.",
}


class SegmentPage(DocumentPage):
    """A page of texts and their segments, gathered one by one.

    Characters are shaded by the probability of a boundary behind them, which is rounded to thousandths. Below the first
    `MOST_BITS` stand the entropies of their predictions, if they are known, as in figure 2 of Nawrot et al. 2023.

    Args:
        settings: of the model, by name.
        most: bytes of all texts. One that does not fit is not on the page; of one that is longer than
            `MOST_CHARACTERS`, the page has the beginning.
    """

    most_of_one = f"{MOST_CHARACTERS:,} characters"

    @checked
    def __init__(self, settings: Mapping[str, str], most: CountOrZero = MOST) -> None:
        super().__init__(_KIND, settings, most)

    @checked
    def add(self, name: str, found: SegmentedText) -> None:
        """Add a text.

        Args:
            name: of the text, its heading.
            found: its segments.
        """
        text = _document(name, found)
        size = self.room.reserve(text)
        if size:
            self.keep(text, size)
        self.left_out += not size or len(found.text) > MOST_CHARACTERS


def _document(name: str, found: SegmentedText) -> Document:
    text, p = found.text[:MOST_CHARACTERS], found.probabilities
    values = None if p is None else (p[:MOST_CHARACTERS] * 1000).round().astype(int).tolist()
    cuts = [0, *(found.ends[:MOST_CHARACTERS].nonzero()[0] + 1).tolist()]
    parts = list(pairwise(cuts))
    entropies = np.zeros(0) if found.entropies is None else found.entropies[: min(len(text), MOST_BITS)]
    bits = (entropies * 100).round().astype(int).tolist()
    lengths = np.bincount([len(segment) for segment in found.segments] or [0])[1:]
    bars = [
        *lengths[: _LONGEST - 1].tolist(),
        *([int(lengths[_LONGEST - 1 :].sum())] if len(lengths) >= _LONGEST else []),
    ]
    document: Document = {
        "name": name,
        "about": _about(found, len(text)),
        "facts": {
            "characters a segment (shortening factor)": "–"
            if found.shortening_factor is None
            else f"{found.shortening_factor:.2f}",
            "boundaries at spaces": _percent(found.boundaries_at_spaces),
            "spaces at boundaries": _percent(found.spaces_at_boundaries),
            "different segments": f"{len(set(found.segments)):,}",
        },
        "segments": [text[start:end] for start, end in parts],
        "blocks": _blocks(parts),
        "runs": [_runs(values, start, end, len(bits)) for start, end in parts],
        "predicted": values is not None,
        "items": [
            {"text": segment, "note": f"{times:,} · {times / len(found.segments):.1%}"}
            for segment, times in found.most_frequent(FREQUENT)
        ],
        "bars": bars,
        "longest": len(lengths) > _LONGEST,
    }
    if cuts[-1] < len(text):
        document["rest"] = text[cuts[-1] :], _runs(values, cuts[-1], len(text), len(bits))
    if bits:
        document["facts"]["bits of entropy a character"] = f"{entropies.mean():.2f}"
        document["bits"] = [bits[start:end] for start, end in [*parts, (cuts[-1], len(text))] if start < len(bits)]
    if not parts:
        highest = "" if values is None else f": the highest probability is {max(values, default=0) / 1000:.3f}"
        document["help"] = f"This model draws no boundary in this text{highest}."
    return document


def _about(found: SegmentedText, shown: int) -> str:
    def many(count: int, noun: str) -> str:
        return f"{count:,} {noun}{'' if count == 1 else 's'}"

    outside = sum(found.outside.values())
    about = [f"{many(len(found.text), 'character')} in {many(len(found.segments), 'segment')}."]
    about += [f"{many(outside, 'character')} outside the alphabet became spaces."] if outside else []
    about += [f"The page shows the first {shown:,}."] if shown < len(found.text) else []
    return " ".join(about)


def _blocks(parts: list[tuple[int, int]]) -> list[tuple[str, int, str]]:
    """Return paragraphs with the number of their first character."""
    blocks = [("p", 0, "1")]
    begun = 0
    for index, (start, _) in enumerate(parts):
        if start - begun >= _BLOCK:
            blocks.append(("p", index, f"{start + 1:,}"))
            begun = start
    return blocks


def _runs(values: list[int] | None, start: int, end: int, barred: int) -> list[int]:
    """Return lengths and values of runs.

    Characters that have a shade are apart, and so are the last one and those before ``barred``, which have a bar.
    """
    runs: list[int] = []
    faint = 0
    for place in range(start, end):
        value = 0 if values is None else values[place]
        if value < _FAINT and barred <= place < end - 1:
            faint += 1
            continue
        runs += [*([faint, 0] if faint else []), 1, value]
        faint = 0
    return runs


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"
