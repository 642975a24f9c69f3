"""A summary, and what it is a summary of."""

from typing import NamedTuple


class Summary(NamedTuple):
    """A summary, and what it is a summary of.

    Attributes:
        text: on one line.
        score: sum of its tokens' log-probabilities / tokens ** length penalty.
        tokens: of the summary, its end included.
        document_tokens: of the whole document, its end included.
        read_tokens: how many of those the model read; the rest, at the end, was cut off.
        shortened_to: most tokens that were allowed, its end not counted, where the limit was lowered because the
            document is short; else None.
    """

    text: str
    score: float
    tokens: int
    document_tokens: int
    read_tokens: int
    shortened_to: int | None = None

    @property
    def was_cut(self) -> bool:
        """Whether the document was longer than the model reads."""
        return self.read_tokens < self.document_tokens
