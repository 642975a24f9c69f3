"""Sentences as vectors."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from pyramidions.arguments import checked
from pyramidions.errors import UserError

# scikit-learn takes a second to import, which commands that do not extract need not wait for.
if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

#: (sentences, features): rows of length 1, or 0 for a sentence without features.
Matrix: TypeAlias = "np.ndarray | csr_array"


@runtime_checkable
class SentenceVectors(Protocol):
    """Turns sentences into vectors whose products are cosine similarities."""

    def __call__(self, sentences: Sequence[str]) -> Matrix:
        """Return a row for each sentence."""


class TfIdf:
    """Vectors of tf-idf weights, with the logarithm of the term frequency (Salton and Buckley 1988).

    Document frequencies are counted over the sentences at hand, or over the documents of a corpus.

    Args:
        corpus: its documents, read once; None to count over the sentences. Words that it lacks are left out.

    Raises:
        UserError: the corpus has no word of two letters.
    """

    @checked
    def __init__(self, corpus: Iterable[str] | None = None) -> None:
        try:
            self._fitted: Any = None if corpus is None else _vectorizer().fit(corpus)
        except ValueError:
            raise UserError("The corpus of document frequencies must hold a word of two letters.") from None

    @checked
    def __call__(self, sentences: Sequence[str]) -> Matrix:
        from scipy.sparse import csr_array

        if self._fitted is not None:
            return csr_array(self._fitted.transform(sentences))
        try:
            found = _vectorizer().fit_transform(sentences)
        except ValueError:
            # No sentence has a word of two letters.
            return csr_array((len(sentences), 1))
        return csr_array(found)


def _vectorizer() -> "TfidfVectorizer":
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True)


def dense(row: Any) -> np.ndarray:
    """Return a product or sum of a `Matrix` as an array."""
    return np.asarray(row.toarray() if hasattr(row, "toarray") else row)
