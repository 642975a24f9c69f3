"""The result of summarizing a document."""

from collections.abc import Sequence
from math import isnan
from typing import Any, NamedTuple

from pyramidions.base.results import as_html, brief
from pyramidions.text.support import SummarySentence, listed


class Coverage(NamedTuple):
    """What a summary covers of a document that was not simply read from its beginning.

    Attributes:
        heading: of the section, where the document was summarized section by section; else None.
        sentences: how many were selected, and how many there are; None where none were selected.
        selected_by: the method or the trained extractor that selected them; None where none were selected.
        left_out: tokens of the document that are in none of the parts that were summarized.
        note: what was done otherwise than asked for, and why; else None.
        documents: how many were read together, with an equal share for each.
        language: by whose rules the document was read; None where these were not needed.
    """

    heading: str | None = None
    sentences: tuple[int, int] | None = None
    selected_by: str | None = None
    left_out: int = 0
    note: str | None = None
    documents: int = 1
    language: str | None = None


class Summary(NamedTuple):
    """A summary, and how much of the document it covers.

    Attributes:
        text: on one line.
        score: sum of its tokens' log-probabilities / tokens ** length penalty. NaN of a served model: numbers of tokens
            are estimates then.
        tokens: of the summary, its end included.
        document_tokens: of the whole document, its end included.
        read_tokens: how many of those the model read; the rest was truncated.
        shortened_to: limit of tokens without the end, if it was lowered for a short document; else None.
        coverage: what else there is to say of that.
        pieces: the summaries of the document's pieces or sections that it joins or summarizes; empty without any.
        sentences: and which sentences of the document support each; None where it was not explained.
        query: what it answers; None without a query.
        copied: the share of its tokens that the output layer copied from the document, its end included: the mean of
            how likely each was copied, given that it was written. None where the layer copies nothing, where nobody
            asked for it, and for a summary of summaries.
        ended_early: the server of the model cut it at its limit.
    """

    text: str
    score: float
    tokens: int
    document_tokens: int
    read_tokens: int
    shortened_to: int | None = None
    coverage: Coverage = Coverage()
    pieces: "tuple[Summary, ...]" = ()
    sentences: tuple[SummarySentence, ...] | None = None
    query: str | None = None
    copied: float | None = None
    ended_early: bool = False

    @property
    def was_cut(self) -> bool:
        """Return whether the document was truncated."""
        return self.read_tokens < self.document_tokens

    def to_dict(self) -> dict[str, Any]:
        """Return it as values that JSON holds; scores and sections are those of its pieces, where it has some."""
        about = as_plain(self.pieces or [self]) | {"summary": self.text}
        if self.copied is None:
            # Its pieces copied from the document, but it summarizes them.
            about.pop("copied", None)
        return about

    def __repr__(self) -> str:
        return brief(self, f"{self.read_tokens:,} of {self.document_tokens:,} tokens")

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the summary, by section if the document was summarized so."""
        has_sections = self.pieces and self.pieces[0].coverage.heading is not None
        return as_html(by_section(self.pieces if has_sections else [self]))


def by_section(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """Return the heading and the summary of each section of a document; one without heading if it was read as one."""
    if summaries[0].coverage.heading is None:
        return [("", " ".join(summary.text for summary in summaries))]
    return [(summary.coverage.heading or "", summary.text) for summary in summaries]


def of_pieces(summary: Summary, pieces: Sequence[Summary], coverage: Coverage) -> Summary:
    """Return the summary of the summaries of a document's pieces, and what it covers of the document."""
    return summary._replace(
        document_tokens=sum(piece.document_tokens for piece in pieces),
        read_tokens=sum(piece.read_tokens for piece in pieces),
        shortened_to=None,
        coverage=coverage,
        pieces=tuple(pieces),
        query=pieces[0].query,
        # It was copied from summaries, not from the document.
        copied=None,
    )


def copied_share(summaries: Sequence[Summary]) -> float | None:
    """Return the share of the tokens of all ``summaries`` that was copied; None if any is unknown."""
    shares = [summary.copied for summary in summaries]
    known = [(share, summary.tokens) for share, summary in zip(shares, summaries, strict=True) if share is not None]
    if len(known) < len(summaries):
        return None
    return sum(share * tokens for share, tokens in known) / sum(tokens for _, tokens in known)


def as_plain(summaries: Sequence[Summary]) -> dict[str, Any]:
    """Return the summaries of the parts of a document as values that JSON holds."""
    first, about = summaries[0], summaries[0].coverage
    scores = [summary.score for summary in summaries]
    copied = copied_share(summaries)
    selected, of = about.sentences or (None, None)
    sections = [{"heading": each.coverage.heading, "summary": each.text} for each in summaries]
    known = {
        "query": first.query,
        "summary": " ".join(summary.text for summary in summaries),
        "pieces": len(first.pieces) or len(summaries),
        "scores": None if any(map(isnan, scores)) else scores,
        "document_tokens": sum(summary.document_tokens + summary.coverage.left_out for summary in summaries),
        "read_tokens": sum(summary.read_tokens for summary in summaries),
        "copied": None if copied is None else round(copied, 4),
        "sections": None if about.heading is None else sections,
        "selected_sentences": selected,
        "sentences": of,
        "selected_by": about.selected_by,
        "cut": any(summary.ended_early for summary in summaries) or None,
        "documents": about.documents if about.documents > 1 else None,
        "language": about.language,
        "note": about.note,
        "support": None
        if first.sentences is None
        else [_support(sentence) for summary in summaries for sentence in summary.sentences or ()],
    }
    return {name: value for name, value in known.items() if value is not None}


def _support(sentence: SummarySentence) -> dict[str, Any]:
    attention = sentence.by_attention
    return {**sentence.to_dict(), "by_attention": None if attention is None else listed(attention)}
