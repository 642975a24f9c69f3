"""Whether a document entails the sentences of its summary."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from pyramidions.scoring.metric import METRICS, Entails, Example, Figure, Metric
from pyramidions.text.language import Language
from pyramidions.text.normalization import normalize

#: What the document is read as: the best of its sentences, or all of it.
Premise = Literal["sentences", "document"]


class Entailment(Metric):
    """How surely some sentence of the document entails, or contradicts, each sentence of the summary; 0 to 100.

    Each figure is the mean over the summary's sentences of the highest probability among the document's. Their
    difference is SummaC-ZS (Laban, Schnabel, Bennett and Hearst, 2022, section 3.2.1), whose package splits sentences
    by nltk and drops those of up to ten characters. With the premise "document", the whole document is the one
    premise, as FactCC reads it (Kryściński, McCann, Xiong and Socher, 2020), truncated to what the model reads.

    Args:
        model: tells the probabilities.
        premise: "sentences" or "document".
        language: as in `Language`; decides where sentences end.
    """

    figures: ClassVar = {
        "entailment": Figure("entailment"),
        "contradiction": Figure("contradiction", "lower"),
    }
    reads_source: ClassVar[bool] = True
    in_workers: ClassVar[bool] = False
    batch_size: ClassVar[int] = 4

    def __init__(self, model: Entails, premise: Premise = "sentences", language: str = "en") -> None:
        self._premise = premise
        self._language = Language(language)
        self._model = model
        self.fit(())

    def fit(self, examples: Iterable[Example]) -> None:
        """Reset the counts of premises that were truncated."""
        self._cut = self._premises = 0

    def of(self, example: Example) -> Sequence[float]:
        """Return both figures."""
        claims = self._sentences(example.prediction)
        source = example.source or ""
        premises = self._sentences(source) if self._premise == "sentences" else [*filter(None, [normalize(source)])]
        if not claims or not premises:
            return 0.0, 0.0 if claims else 100.0
        judged = self._model.judged([(premise, claim) for claim in claims for premise in premises])
        self._premises += len(premises)
        self._cut += judged.cut // len(claims)
        # (claims * premises, 2) -> (2,)
        best = judged.chances.reshape(len(claims), len(premises), 2).max(axis=1).mean(axis=0)
        return tuple(100 * best)

    def _sentences(self, text: str) -> list[str]:
        return [sentence for line in text.splitlines() for sentence in self._language.sentences(line)]

    def signature(self) -> str:
        """Name the model and the premise."""
        premise = "best of the document's sentences" if self._premise == "sentences" else "the document"
        return f"entailment | {self._model.signature()} | {premise} | mean over the summary's sentences"

    def remarks(self) -> list[str]:
        """Say how many premises were truncated."""
        if not self._cut:
            return []
        return [
            f"entailment: {self._cut:,} of {self._premises:,} premises are longer than the model reads and were cut."
        ]


@METRICS.register("entailment")
def entailment(
    entailment_model: str | None = None,
    entailment_premise: Premise = "sentences",
    device: str = "cpu",
    language: str = "en",
) -> Entailment:
    """Load the classifier."""
    # torch takes seconds to import: only when it is needed.
    from pyramidions.scoring.encoders.readers import EntailmentClassifier

    return Entailment(EntailmentClassifier.of(entailment_model, device), entailment_premise, language)
