"""The summaries of a system with what they are scored against."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from pyramidions.base.errors import UserError
from pyramidions.scoring.metric import Example

Item = TypeVar("Item", covariant=True)


class Listed(Protocol[Item]):
    """Items by position; not all need be in memory."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Item: ...


Texts = Listed[str]
#: Of each document.
References = Listed[tuple[str, ...]]


class Read(Listed[str]):
    """Texts that are read when they are asked for.

    Args:
        number: of texts.
        read: returns a text by its position.
    """

    def __init__(self, number: int, read: Callable[[int], str]) -> None:
        self._number, self._read = number, read

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, index: int, /) -> str:
        return self._read(index)


class Examples:
    """The examples of one system; each iteration reads them again.

    Args:
        predictions: one text a document.
        references: of the documents in the same order.
        sources: the documents, or None.

    Raises:
        UserError: unequal counts, or no document.
    """

    def __init__(self, predictions: Texts, references: References, sources: Texts | None = None) -> None:
        if len(predictions) != len(references):
            raise UserError(
                "There must be as many summaries as references, "
                f"but there are {len(predictions)} and {len(references)}."
            )
        if sources is not None and len(sources) != len(references):
            raise UserError(
                f"There must be as many documents as references, but there are {len(sources)} and {len(references)}."
            )
        if not len(references):
            raise UserError("There must be at least one document to score.")
        self.predictions = predictions
        self.references = references
        self.sources = sources

    def __len__(self) -> int:
        return len(self.references)

    def __getitem__(self, index: int) -> Example:
        source = None if self.sources is None else self.sources[index]
        return Example(self.predictions[index], self.references[index], source)

    def __iter__(self) -> Iterator[Example]:
        return map(self.__getitem__, range(len(self)))
