"""What APES and the metrics of entities ask of models that read."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Question(NamedTuple):
    """A question and the text that it is asked of."""

    question: str
    text: str


class Span(NamedTuple):
    """Where in a sentence an entity stands, in characters."""

    start: int
    end: int


class Answers(Protocol):
    """Answers questions by texts."""

    @property
    def blank(self) -> str:
        """What stands for the masked words of a question."""

    def answers(self, asked: Sequence[Question], /) -> list[str]:
        """Return the answers; "" where a text has none."""

    def signature(self) -> str:
        """Name the model."""


class Tags(Protocol):
    """Finds entities in sentences."""

    def entities(self, sentences: Sequence[str], /) -> list[list[Span]]:
        """Return the entities of sentences, in order."""

    def signature(self) -> str:
        """Name the model."""
