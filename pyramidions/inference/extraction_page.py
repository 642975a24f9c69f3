"""Shows extractions on an HTML page: one file that needs no network."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from pyramidions.base.arguments import CountOrZero, checked
from pyramidions.extract.extraction import Extraction, said
from pyramidions.pages.page import MOST, Document, DocumentPage, Kind, Table, text_of
from pyramidions.text.words import count_words

#: most sentences of a document on a page that browsers draw at once
MOST_SENTENCES = 2**16
# The best share of all sentences, and their shade.
_BANDS = ((0.05, 800), (0.1, 500), (0.25, 280), (0.5, 120))
_KIND: Kind = {
    "layout": "sentences",
    "title": "Documents and their summaries",
    "unit": "sentence",
    "heading": "Summary",
    "table": "Section by section",
    "chart": "Scores along the document, with the chosen sentences and the sections",
    "help": "Choose a sentence of the summary to find it in the document, or one of the document to see its score. "
    "Arrow keys go to the next one, Escape lets it go.",
    "legend": [
        (0.8, "score among the best 5%"),
        (0.5, "10%"),
        (0.28, "25%"),
        (0.12, "half of the sentences"),
        ("chosen", "chosen, with its number in the summary"),
        ("", "Numbers in the margin count sentences.", "wide"),
    ],
    "figure": "Blue: the better the score, the darker; numbers and orange lines: chosen.",
}


class ExtractionPage(DocumentPage):
    """A page of documents and their extractive summaries, gathered one by one.

    Sentences are shaded by the rank of their score, and those of the summary are marked. Scores are rounded to six
    digits.

    Args:
        method: what to call the ranker.
        most: bytes of all documents; a document that does not fit, or has more than `MOST_SENTENCES`, is not on the
            page.
        settings: further settings by name, such as the budget.
    """

    most_of_one = f"{MOST_SENTENCES:,} sentences"

    @checked
    def __init__(self, method: str, most: CountOrZero = MOST, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(_KIND, {"method": method, **(settings or {})}, most)
        self._method = method

    @checked
    def add(
        self,
        name: str,
        extraction: Extraction,
        reference: str | None = None,
        covered: Sequence[Sequence[tuple[str, float]]] | None = None,
        method: str | None = None,
    ) -> None:
        """Add a document.

        Args:
            name: of the document, its heading.
            extraction: its sentences, their scores and the summary.
            reference: a summary to compare with.
            covered: the wanted concepts that each extracted sentence covers, as `Extractor.covered` returns them.
            method: what to call the ranker of this document; None for that of all.
        """
        document = _document(name, extraction, reference, method or self._method)
        for item, concepts in zip(document["items"], covered or (), strict=covered is not None):
            item["note"] = ", ".join(f"{concept} {chance:.0%}" for concept, chance in concepts)
        if len(extraction.scores) > MOST_SENTENCES:
            self.left_out += 1
        else:
            self.put(document)


def _document(name: str, extraction: Extraction, reference: str | None, method: str) -> Document:
    sentences, chosen = extraction.outline.sentences, [sentence.position for sentence in extraction.sentences]
    scores = [float(f"{score:.6g}") if math.isfinite(score) else None for score in extraction.scores.tolist()]
    # Equal scores have one rank.
    order = sorted(-score for score in scores if score is not None)
    ranks = [None if score is None else bisect_left(order, -score) + 1 for score in scores]
    text = text_of(extraction.outline)
    words, all_words = (sum(count_words(each.text) for each in found) for found in (extraction.sentences, sentences))
    share = f" ({words / all_words:.1%})" if all_words else ""
    noun, of_words = ("sentence" if len(sentences) == 1 else "sentences"), ("word" if all_words == 1 else "words")
    return {
        "name": name,
        "about": f"{method} chose {len(chosen):,} of {len(sentences):,} {noun}: {words:,} of {all_words:,} {of_words}"
        f"{share}.",
        **text,
        "shades": [[_shade(rank, len(scores)) for rank in ranks]],
        "scores": scores,
        "ranks": ranks,
        "items": [
            {"text": sentence, "links": [{"to": [each.position]}]}
            for each, sentence in zip(extraction.sentences, said(extraction.sentences), strict=True)
        ],
        "reference": reference,
        "table": _sections(text["blocks"], ranks, chosen),
    }


def _shade(rank: int | None, sentences: int) -> int:
    if rank is None:
        return 0
    return next((shade for share, shade in _BANDS if (rank - 1) / sentences < share), 0)


def _sections(blocks: list[tuple[str, int, str]], ranks: list[int | None], chosen: list[int]) -> Table:
    starts = [(start, heading) for tag, start, heading in blocks if tag == "h2"]
    ends = [start for start, _ in starts[1:]] + [len(ranks)] * bool(starts)
    unnamed = "before the first heading" if len(starts) > 1 else "the whole document"
    table: Table = {"head": ["section", "sentences", "chosen", "best rank"], "rows": [], "go": []}
    for (start, heading), end in zip(starts, ends, strict=True):
        if start < end:
            best = min((rank for rank in ranks[start:end] if rank is not None), default=None)
            inside = sum(start <= position < end for position in chosen)
            table["go"].append(start)
            table["rows"].append(
                [heading or unnamed, f"{end - start:,}", f"{inside:,}", "–" if best is None else f"{best:,}"]
            )
    return table
