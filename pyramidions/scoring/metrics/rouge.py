"""ROUGE-1, -2, -L and -Lsum (Lin, 2004), the same for every system and every corpus."""

from collections import Counter
from importlib.metadata import version
from typing import ClassVar

from rouge_score import tokenize

from pyramidions.scoring.metric import METRICS, Example, Figure, Metric
from pyramidions.text.language import Language
from pyramidions.text.normalization import NORMALISATION, SPLITTER
from pyramidions.text.subsequence import Subsequences
from pyramidions.text.words import ngrams


@METRICS.register("rouge")
class Rouge(Metric):
    """F-measures, 0 to 100; of several references the best by each figure.

    Both texts are normalised and split into sentences here, whatever their own line breaks. The words of English are
    rouge-score's, and their stems are remembered. Its figures are counted here, equal to the last digit: subsequences
    in bits, since its tables take nearly all of its time.
    """

    figures: ClassVar = {
        "rouge1": Figure("ROUGE-1"),
        "rouge2": Figure("ROUGE-2"),
        "rougeL": Figure("ROUGE-L"),
        "rougeLsum": Figure("ROUGE-Lsum"),
    }

    def __init__(self, language: str = "en", tokenization: str | None = None, stemmer: str | None = None) -> None:
        self._language = Language(language, tokenization, stemmer)

    def of(self, example: Example) -> list[float]:
        prediction = _Counted(self._sentences(example.prediction))
        of_each = [_scores(prediction, _Counted(self._sentences(reference))) for reference in example.references]
        return [100 * max(scores) for scores in zip(*of_each, strict=True)]

    def _sentences(self, text: str) -> list[list[str]]:
        return [self._words(sentence) for sentence in self._language.sentences(text)]

    def _words(self, sentence: str) -> list[str]:
        if self._language.tokenization == "ascii":
            return tokenize.tokenize(sentence, self._language)
        # Short words keep their endings, as there and in ROUGE-1.5.5.
        return [word if len(word) <= 3 else self._language.stem(word) for word in self._language.words(sentence)]

    def signature(self) -> str:
        # What is said of English with the usual settings stays as it was before there were others.
        is_usual = (self._language.tokenization, self._language.stemmer) == ("ascii", "porter")
        words = "stemmer" if is_usual else self._language.signature()
        name, package = ("rouge-score", "rouge-score") if is_usual else ("ROUGE pyramidions", "pyramidions")
        implementation = f"{name} {version(package)}"
        return f"{implementation} | {words} | F1 | sentences: {SPLITTER} | normalisation {NORMALISATION}"


class _Counted:
    """The words of the sentences of a text, for all four measures."""

    def __init__(self, sentences: list[list[str]]) -> None:
        self.sentences = sentences
        self.words = [word for sentence in sentences for word in sentence]
        self.ngrams = {n: Counter(ngrams(self.words, n)) for n in (1, 2)}


def _scores(prediction: _Counted, reference: _Counted) -> list[float]:
    """Return ROUGE-1, -2, -L and -Lsum, 0 to 1."""
    found = [
        _f_measure((ours & reference.ngrams[n]).total(), ours.total(), reference.ngrams[n].total())
        for n, ours in prediction.ngrams.items()
    ]
    sizes = len(prediction.words), len(reference.words)
    common = Subsequences(reference.words).length(prediction.words)
    return [*found, _f_measure(common, *sizes), _f_measure(_summary_level(prediction, reference), *sizes)]


def _summary_level(prediction: _Counted, reference: _Counted) -> int:
    """Return how many words the union of common subsequences has (Lin 2004, section 3.2), none counted twice."""
    left = [Counter(text.words) for text in (prediction, reference)]
    hits = 0
    for sentence in reference.sentences:
        subsequences = Subsequences(sentence)
        union = 0
        for other in prediction.sentences:
            union |= subsequences.positions(other)
        for place, word in enumerate(sentence):
            if union >> place & 1 and all(counts[word] > 0 for counts in left):
                hits += 1
                for counts in left:
                    counts[word] -= 1
    return hits


def _f_measure(hits: int, predicted: int, expected: int) -> float:
    if not hits:
        return 0.0
    precision, recall = hits / predicted, hits / expected
    return 2 * precision * recall / (precision + recall)
