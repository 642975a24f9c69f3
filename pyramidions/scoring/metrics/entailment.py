"""Whether a document entails the sentences of its summary."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.scoring.metric import METRICS, CountingMetric, Example, Figure, truncated_pairs
from pyramidions.text.language import Language
from pyramidions.text.normalization import SPLITTER, normalize

#: What the document is read as: the best of its sentences, or all of it.
Premise = Literal["sentences", "document"]


@METRICS.register("entailment")
class Entailment(CountingMetric):
    """How likely a sentence of the document entails, or contradicts, each sentence of the summary; 0 to 100.

    Each figure is the mean over the summary's sentences of the highest probability among the document's. Their
    difference is SummaC-ZS (Laban, Schnabel, Bennett and Hearst, 2022, section 3.2.1), whose package splits sentences
    by nltk, drops those of up to ten characters, and reads the first 100 of a document. With the premise "document",
    the whole document is the one premise, as FactCC reads it (Kryściński, McCann, Xiong and Socher, 2020), truncated to
    what the model reads.
    """

    figures: ClassVar = {"entailment": Figure("entailment"), "contradiction": Figure("contradiction", "lower")}
    reads_source: ClassVar[bool] = True
    batch_size: ClassVar[int] = 4

    def __init__(
        self,
        entailment_model: str | None = None,
        entailment_premise: Premise = "sentences",
        device: str = "cpu",
        language: str = "en",
    ) -> None:
        # torch takes seconds to import: only when it is needed.
        from pyramidions.scoring.encoders.readers import EntailmentClassifier

        self._model = EntailmentClassifier(entailment_model, device)
        if entailment_premise == "sentences" and self._model.is_binary:
            raise UserError(
                "`entailment_premise` must be document for a classifier of two labels, but is sentences: any document "
                "has a sentence that does not entail the claim."
            )
        super().__init__()
        self._premise = entailment_premise
        self._language = Language(language)

    def of(self, example: Example) -> Sequence[float]:
        claims, source = self._language.sentences(example.prediction), normalize(example.source or "")
        premises = self._language.sentences(source) if self._premise == "sentences" else [source] * bool(source)
        if not claims or not premises:
            return 0.0, 0.0 if claims else 100.0
        best = []
        for claim in claims:
            judged = self._model.judged(premises, claim)
            best.append(judged.probabilities.max(axis=0))
            self.counts.update(truncated=judged.truncated, pairs=len(premises))
        return tuple(100 * np.mean(best, axis=0))

    def signature(self) -> str:
        premise = "best of the document's sentences" if self._premise == "sentences" else "the document"
        splitter = f"sentences: {SPLITTER}, language {self._language.code}"
        return f"entailment | {self._model.signature()} | {premise} | mean over the summary's sentences | {splitter}"

    def remarks(self) -> list[str]:
        return truncated_pairs("entailment", self.counts, "of a premise and a sentence of a summary")
