"""The result of summarizing a document."""

from typing import NamedTuple


class Summary(NamedTuple):
    """A summary, and how much of the document it covers.

    Attributes:
        text: on one line.
        score: sum of its tokens' log-probabilities / tokens ** length penalty.
        tokens: of the summary, its end included.
        document_tokens: of the whole document, its end included.
        read_tokens: how many of those the model read; the rest was truncated.
        shortened_to: limit of tokens without the end, if it was lowered for a short document; else None.
    """

    text: str
    score: float
    tokens: int
    document_tokens: int
    read_tokens: int
    shortened_to: int | None = None

    @property
    def was_cut(self) -> bool:
        """Return whether the document was truncated."""
        return self.read_tokens < self.document_tokens
