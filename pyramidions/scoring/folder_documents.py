"""The documents of a data folder as texts, and their first sentences."""

from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.text.language import Language
from pyramidions.text.words import count_words


class FolderDocuments:
    """The documents of a split by position, decoded from their tokens when asked for; unknown characters read ⁇.

    A query is no part of its document.

    Args:
        folder: made by `pyramidions prepare`.
        split: one of its splits.

    Raises:
        UserError: the folder lacks the split, its tokenizer, or one of their files.
    """

    def __init__(self, folder: DataFolder, split: str) -> None:
        self._tokenizer = folder.tokenizer()
        self._documents = IndexedReader(folder.indexed(split, "source"))
        self._has_queries = folder.has_queries

    def __len__(self) -> int:
        return len(self._documents)

    def __getitem__(self, index: int) -> str:
        """Return a document."""
        tokens = self._documents[index]
        begin = tokens.index(self._tokenizer.eos) + 1 if self._has_queries else 0
        return self._tokenizer.decode(i % self._tokenizer.vocab_size for i in tokens[begin:])


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
