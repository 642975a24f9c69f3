"""The lead baseline."""

from pyramidions.scoring.examples import Texts
from pyramidions.text.normalization import split_sentences


def lead(text: str, num_words: int) -> str:
    """Return as many first sentences as fit into ``num_words`` words, and at least one."""
    kept: list[str] = []
    words = 0
    for sentence in split_sentences(text):
        words += len(sentence.split())
        if kept and words > num_words:
            break
        kept.append(sentence)
    return " ".join(kept)


class Leads:
    """The leads of documents by position.

    Args:
        documents: by position.
        num_words: as in `lead`.
    """

    def __init__(self, documents: Texts, num_words: int) -> None:
        self._documents = documents
        self._num_words = num_words

    def __len__(self) -> int:
        return len(self._documents)

    def __getitem__(self, index: int) -> str:
        """Return the lead of a document."""
        return lead(self._documents[index], self._num_words)
