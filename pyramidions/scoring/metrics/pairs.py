"""BARTScore and BLEURT, which models give to pairs of texts."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pyramidions.scoring.metric import METRICS, CountingMetric, Example, Figure, truncated_pairs
from pyramidions.text.normalization import NORMALISATION, normalize

# torch takes seconds to import: only when it is needed.
if TYPE_CHECKING:
    from pyramidions.scoring.encoders.raters import LikelihoodRater, Rater


class PairMetric(CountingMetric):
    """What a model gives to pairs of a summary and another text; its figures are not bounded.

    Texts are normalised as for ROUGE: line breaks make no difference.
    """

    #: As users call it, and how its figures are computed.
    name: ClassVar[str]
    settings: ClassVar[str]

    def __init__(self, model: "Rater") -> None:
        super().__init__()
        self._model = model

    @abstractmethod
    def pairs(self, example: Example) -> list[tuple[str, str]]:
        """Return the pairs of an example, whose texts are normalised."""

    @abstractmethod
    def combine(self, values: np.ndarray) -> Sequence[float]:
        """Return the figures of an example, (figures,), by the values of its pairs, (pairs,)."""

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        pairs = [self.pairs(_normalised(example)) for example in examples]
        rated = self._model.rated([pair for of_example in pairs for pair in of_example])
        self.counts.update(truncated=rated.truncated, pairs=len(rated.values))
        ends = np.cumsum([len(of_example) for of_example in pairs])[:-1]
        return np.array([self.combine(values) for values in np.split(rated.values, ends)])

    def signature(self) -> str:
        return f"{self.settings} | {self._model.signature()} | normalisation {NORMALISATION}"

    def remarks(self) -> list[str]:
        return truncated_pairs(self.name, self.counts, "of texts")


def _normalised(example: Example) -> Example:
    references = tuple(map(normalize, example.references))
    return Example(normalize(example.prediction), references, normalize(example.source or ""))


@METRICS.register("bartscore")
class BartScore(PairMetric):
    """Mean log-likelihood of the summary's tokens given a reference, of the reference's given the summary, and F.

    BARTScore (Yuan, Neubig and Liu, 2021, section 3.2), in nats a token; F is the arithmetic mean of the two. Of
    several references the mean counts, as by default in the authors' package.
    """

    name: ClassVar = "bartscore"
    settings: ClassVar = "BARTScore | nats a token | mean of references"
    figures: ClassVar = {
        "bartscore_precision": Figure("BARTScore precision", bounded=False),
        "bartscore_recall": Figure("BARTScore recall", bounded=False),
        "bartscore_f": Figure("BARTScore F", bounded=False),
    }

    def __init__(self, bartscore_model: str | None = None, device: str = "cpu") -> None:
        super().__init__(_likelihoods(bartscore_model, device))

    def pairs(self, example: Example) -> list[tuple[str, str]]:
        summary = example.prediction
        return [pair for reference in example.references for pair in ((reference, summary), (summary, reference))]

    def combine(self, values: np.ndarray) -> Sequence[float]:
        precision, recall = values.reshape(-1, 2).mean(axis=0)
        return precision, recall, (precision + recall) / 2


@METRICS.register("bartscore_faithfulness")
class BartScoreFaithfulness(BartScore):
    """Mean log-likelihood of the summary's tokens given the document; otherwise as `BartScore`.

    It is a metric of its own, as the other directions do without documents.
    """

    name: ClassVar = "bartscore_faithfulness"
    settings: ClassVar = "BARTScore | nats a token | given the document"
    figures: ClassVar = {"bartscore_faithfulness": Figure("BARTScore faithfulness", bounded=False)}
    reads_source: ClassVar[bool] = True

    def pairs(self, example: Example) -> list[tuple[str, str]]:
        return [(example.source or "", example.prediction)]

    def combine(self, values: np.ndarray) -> Sequence[float]:
        return [float(values[0])]


@METRICS.register("bleurt")
class Bleurt(PairMetric):
    """How good people would find the summary beside a reference, as a trained model predicts.

    BLEURT (Sellam, Das and Parikh, 2020). Published models predict ratings of translations, standardised by annotator.
    Of several references the best counts; the authors' package knows one.
    """

    name: ClassVar = "bleurt"
    settings: ClassVar = "BLEURT | best of references"
    figures: ClassVar = {"bleurt": Figure("BLEURT", bounded=False)}

    def __init__(self, bleurt_model: str | None = None, device: str = "cpu") -> None:
        from pyramidions.scoring.encoders.raters import RegressionRater

        super().__init__(RegressionRater(bleurt_model, device))

    def pairs(self, example: Example) -> list[tuple[str, str]]:
        return [(reference, example.prediction) for reference in example.references]

    def combine(self, values: np.ndarray) -> Sequence[float]:
        return [float(values.max())]


@lru_cache(maxsize=1)
def _likelihoods(place: str | None, device: str) -> "LikelihoodRater":
    # Once for all directions.
    from pyramidions.scoring.encoders.raters import LikelihoodRater

    return LikelihoodRater(place, device)
