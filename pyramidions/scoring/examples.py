"""The summaries of a system with what they are scored against; texts are read when they are asked for."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.scoring.metric import Example
from pyramidions.text.language import Language
from pyramidions.text.words import count_words

Item = TypeVar("Item", covariant=True)


class Listed(Protocol[Item]):
    """Items by position; not all need be in memory."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Item: ...


Texts = Listed[str]


class Read(Listed[str]):
    """A number of texts; ``read`` returns each by its position."""

    def __init__(self, number: int, read: Callable[[int], str]) -> None:
        self._number, self._read = number, read

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, index: int, /) -> str:
        return self._read(index)


class FolderDocuments:
    """The documents of a split of a data folder, decoded from their tokens; unknown characters read ⁇.

    A query is no part of its document.
    """

    def __init__(self, folder: DataFolder, split: str) -> None:
        self._tokenizer = folder.tokenizer()
        self._documents = IndexedReader(folder.indexed(split, "source"))
        self._has_queries = folder.has_queries

    def __len__(self) -> int:
        return len(self._documents)

    def __getitem__(self, index: int) -> str:
        tokens = self._documents[index]
        begin = tokens.index(self._tokenizer.eos) + 1 if self._has_queries else 0
        return self._tokenizer.decode(i % self._tokenizer.vocab_size for i in tokens[begin:])


class Examples:
    """The examples of one system, in the order of the documents; each iteration reads them again."""

    def __init__(self, predictions: Texts, references: Listed[tuple[str, ...]], sources: Texts | None = None) -> None:
        if not len(references):
            raise UserError("There must be at least one document to score.")
        for name, texts in {"predictions": predictions, "sources": sources}.items():
            if texts is not None and len(texts) != len(references):
                raise UserError(f"`{name}` must be {len(references):,}, one for each document, but are {len(texts):,}.")
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


def lead(text: str, num_words: int, language: Language) -> str:
    """Return as many first sentences as fit into ``num_words`` words (`count_words`), and at least one."""
    kept: list[str] = []
    words = 0
    for sentence in language.sentences(text):
        words += count_words(sentence)
        if kept and words > num_words:
            break
        kept.append(sentence)
    return " ".join(kept)
