"""The longest common subsequence of words: ROUGE-L of sentences."""

from collections.abc import Sequence

from rouge_score import tokenize

from pyramidions.text.subsequence import Subsequences


def words_of(text: str) -> list[str]:
    """Return the words of a text as rouge-score has them: runs of a-z and 0-9 in lower case, not stemmed."""
    return tokenize.tokenize(text, None)


class Recall:
    """ROUGE-L recall of one sentence by others (Lin 2004, section 3.1).

    Args:
        words: of the sentence, which are looked for in order.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._number = len(words)
        self._subsequences = Subsequences(words)

    def by(self, words: Sequence[str]) -> float:
        """Return the share of the sentence's words in a longest common subsequence; 0 for a sentence without words.

        Args:
            words: of the other sentence.
        """
        return self._subsequences.length(words) / self._number if self._number else 0.0
