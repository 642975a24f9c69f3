"""The result of summarizing a document."""

from typing import NamedTuple

from pyramidions.inference.supported_sentences import SummarySentence


class Coverage(NamedTuple):
    """What a summary covers of a document that was not simply read from its beginning.

    Attributes:
        heading: of the section, where the document was summarized section by section; else None.
        sentences: how many were selected, and how many there are; None where none were selected.
        selected_by: the method or the trained extractor that selected them; None where none were selected.
        left_out: tokens of the document that are in none of the parts that were summarized.
        note: what was done otherwise than asked for, and why; else None.
    """

    heading: str | None = None
    sentences: tuple[int, int] | None = None
    selected_by: str | None = None
    left_out: int = 0
    note: str | None = None


class Summary(NamedTuple):
    """A summary, and how much of the document it covers.

    Attributes:
        text: on one line.
        score: sum of its tokens' log-probabilities / tokens ** length penalty.
        tokens: of the summary, its end included.
        document_tokens: of the whole document, its end included.
        read_tokens: how many of those the model read; the rest was truncated.
        shortened_to: limit of tokens without the end, if it was lowered for a short document; else None.
        coverage: what else there is to say of that.
        pieces: the summaries of the document's pieces or sections that it joins or summarizes; empty without any.
        sentences: and which sentences of the document support each; None where it was not explained.
        query: what it answers; None without a query.
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

    @property
    def was_cut(self) -> bool:
        """Return whether the document was truncated."""
        return self.read_tokens < self.document_tokens
