"""Sentences as vectors."""

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from pyramidions.base.arguments import checked
from pyramidions.base.errors import UserError
from pyramidions.text.normalization import UNSPACED, normalize
from pyramidions.text.words import MARKS

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_BLOCK = 2**12  # sentences that are computed at a time
_WORD = re.compile(f"[\\w{MARKS}]{{2,}}")
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")

#: (sentences, features): rows of length 1, or 0 for a sentence without features.
Matrix: TypeAlias = "np.ndarray | csr_array"


@runtime_checkable
class SentenceVectors(Protocol):
    """Turns sentences into vectors whose products are cosine similarities."""

    def __call__(self, sentences: Sequence[str]) -> Matrix:
        """Return a row for each sentence."""


class TfIdf:
    """Vectors of tf-idf weights, with the logarithm of the term frequency (Salton and Buckley 1988).

    Words are those of `words_of_vectors`. Document frequencies are counted over the
    sentences at hand, or over the documents of a corpus. All are one higher, as if one more document had every word.

    Args:
        corpus: its documents, read once; None to count over the sentences. Words that it lacks are left out.

    Raises:
        UserError: the corpus has no word of two letters.
    """

    @checked
    def __init__(self, corpus: Iterable[str] | None = None) -> None:
        self._known = None if corpus is None else _known(corpus)
        if self._known is not None and not self._known.columns:
            raise UserError("The corpus of document frequencies must hold a word of two letters.")

    @checked
    def __call__(self, sentences: Sequence[str]) -> Matrix:
        from scipy.sparse import csr_array

        known = self._known
        columns = defaultdict(count().__next__) if known is None else known.columns
        # (words of all sentences,): the column of each, in 4 bytes, and its weight, in 8.
        indices, ends = array("i"), array("i", [0])
        for sentence in sentences:
            words = words_of_vectors(sentence)
            indices.extend(columns[word] for word in words if known is None or word in columns)
            ends.append(len(indices))
        places = np.asarray(indices)
        if known is None:
            places = _alphabetical(columns)[places]
        x = csr_array((np.ones(len(places)), places, ends), shape=(len(sentences), max(1, len(columns))))
        x.sum_duplicates()
        weights = _weights(len(sentences), np.bincount(x.indices)) if known is None else known.weights
        np.log(x.data, out=x.data)
        x.data += 1
        for start in range(0, x.shape[0], _BLOCK):
            ends = x.indptr[start : start + _BLOCK + 1]
            held = slice(ends[0], ends[-1])
            x.data[held] *= weights[x.indices[held]]
            lengths = np.sqrt(squares(rows(x, slice(start, start + _BLOCK))))
            x.data[held] /= np.repeat(lengths, np.diff(ends))
        return x


class _Known(NamedTuple):
    """The words of some documents."""

    columns: dict[str, int]  # of each word, in alphabetical order
    weights: np.ndarray  # (words,): ln((1 + documents) / (1 + documents with the word)) + 1


def _known(documents: Iterable[str]) -> _Known:
    number, frequencies = 0, Counter[str]()
    for document in documents:
        number += 1
        frequencies.update(set(words_of_vectors(document)))
    words = sorted(frequencies)
    weights = _weights(number, np.array([frequencies[word] for word in words]))
    return _Known({word: column for column, word in enumerate(words)}, weights)


def _weights(number: int, frequencies: np.ndarray) -> np.ndarray:
    return np.log((1 + number) / (1.0 + frequencies)) + 1


def _alphabetical(columns: Iterable[str]) -> np.ndarray:
    """Return where each word stands in their alphabetical order: (words,), int32."""
    places = {word: place for place, word in enumerate(sorted(columns))}
    return np.array([places[word] for word in columns], dtype=np.int32)


def words_of_vectors(text: str) -> list[str]:
    """Return the words of a text, of two letters or digits at least, normalised and in lower case.

    In scripts without spaces, all pairs of neighbouring characters are words.
    """
    text = normalize(text)
    words = _WORD.findall(text.lower())
    if text.isascii() or not _UNSPACED_RUN.search(text):
        return words
    runs = (run for word in words for run in re.split(f"({_UNSPACED_RUN.pattern})", word) if len(run) > 1)
    return [
        word for run in runs for word in ([f"{a}{b}" for a, b in pairwise(run)] if _UNSPACED_RUN.match(run) else [run])
    ]


def rows(x: Matrix, part: slice) -> Matrix:
    """Return rows that follow one another; most of a matrix are not copied."""
    if isinstance(x, np.ndarray):
        return x[part]
    from scipy.sparse import csr_array

    ends = x.indptr[part.start : part.stop + 1]
    held = slice(ends[0], ends[-1])
    return csr_array((x.data[held], x.indices[held], ends - ends[0]), shape=(len(ends) - 1, x.shape[1]))


def squares(x: Matrix) -> np.ndarray:
    """Return the squared length of each row."""
    squared = np.empty(x.shape[0])
    for start in range(0, x.shape[0], _BLOCK):
        part = rows(x, slice(start, start + _BLOCK))
        squared[start : start + _BLOCK] = dense((part * part).sum(axis=1)).ravel()
    return squared


def dense(row: Any) -> np.ndarray:
    """Return a product or sum of a `Matrix` as an array."""
    return np.asarray(row.toarray() if hasattr(row, "toarray") else row)
