"""What BERTScore and MoverScore have in common: they compare the vectors of two texts' tokens."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pyramidions.scoring.metric import Example, Metric

# torch takes seconds to import: only when it is needed.
if TYPE_CHECKING:
    from pyramidions.scoring.encoders.embedder import Embedded, Embedder


class EmbeddingMetric(Metric):
    """Compares a summary with each reference.

    Args:
        embedder: of all texts.
    """

    #: As users call it.
    name: ClassVar[str]
    in_workers: ClassVar[bool] = False
    batch_size: ClassVar[int] = 32

    def __init__(self, embedder: "Embedder") -> None:
        self.embedder = embedder
        self._counts = _Counts()

    def fit(self, examples: Iterable[Example]) -> None:
        """Count anew what is truncated."""
        self._counts = _Counts()

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        """Return the figures of examples, 0 to 100: (documents, figures)."""
        texts = list(dict.fromkeys(text for example in examples for text in (example.prediction, *example.references)))
        embedded = dict(zip(texts, self.embedder.embed(texts), strict=True))
        rows = []
        for example in examples:
            summary = embedded[example.prediction]
            references = [embedded[reference] for reference in example.references]
            self._counts.add(summary, references)
            rows.append(self.combine(np.array([self._compare(summary, reference) for reference in references])))
        return 100 * np.array(rows)

    def _compare(self, summary: "Embedded", reference: "Embedded") -> np.ndarray:
        if summary.tokens.is_empty or reference.tokens.is_empty:
            return np.zeros(len(self.figures))
        return self.compare(summary, reference)

    @abstractmethod
    def compare(self, summary: "Embedded", reference: "Embedded") -> np.ndarray:
        """Return the figures of a summary and one reference, neither of them empty: (figures,), 1 is best."""

    @abstractmethod
    def combine(self, of_references: np.ndarray) -> np.ndarray:
        """Return the figures of a summary, (figures,), by those with each reference, (references, figures)."""

    def weighed(self, weights: np.ndarray, free: np.ndarray) -> np.ndarray:
        """Return weights with the sum 1.

        Args:
            weights: (tokens,), not negative.
            free: (tokens,), bool, or 0 and 1: what weighs the same if no token has a weight. Idf knows no rare word
                where each is in all texts, as in a corpus of one document.
        """
        if weights.sum() <= 0:
            self._counts.unweighed += 1
            weights = free.astype(np.float64)
        return weights / (weights.sum() or 1)

    def remarks(self) -> list[str]:
        """Say how many texts were truncated, and how often one had no weights."""
        return self._counts.remarks(self.name, self.embedder.length)


class _Counts:
    """What there is to remark since `fit`."""

    def __init__(self) -> None:
        self.summaries = self.references = self.cut_summaries = self.cut_references = self.unweighed = 0

    def add(self, summary: "Embedded", references: "Sequence[Embedded]") -> None:
        self.summaries += 1
        self.cut_summaries += summary.tokens.is_cut
        self.references += len(references)
        self.cut_references += sum(reference.tokens.is_cut for reference in references)

    def remarks(self, name: str, length: int | None) -> list[str]:
        found = []
        if self.cut_summaries or self.cut_references:
            summaries, references = self.cut_summaries / self.summaries, self.cut_references / self.references
            found.append(
                f"{name}: {self.cut_summaries:,} of {self.summaries:,} summaries and {self.cut_references:,} of "
                f"{self.references:,} references are longer than the model's {length} tokens and were truncated "
                f"({summaries:.1%} and {references:.1%})."
            )
        if self.unweighed:
            found.append(
                f"{name}: {self.unweighed:,} times a text had no word that is rarer than others, so all of its words "
                "weighed the same."
            )
        return found
