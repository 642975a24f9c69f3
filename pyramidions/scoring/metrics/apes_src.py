"""APES (Eyal, Baumel and Elhadad, 2019) and APES_src (Huang, Cao, Parulian, Ji and Wang, 2021)."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from pyramidions.extract.oracle import covering
from pyramidions.scoring.cloze import Cloze, answer_f1, clozes
from pyramidions.scoring.metric import METRICS, Example, Figure, Metric
from pyramidions.scoring.reading import Answers, Question, Tags
from pyramidions.text.language import Language
from pyramidions.text.normalization import normalize


class _Asked(NamedTuple):
    """A cloze question about a reference, and the context that is read for its answer."""

    example: int
    cloze: Cloze
    context: str


class ApesSrc(Metric):
    """Asks questions about the references; F1 of the words of answers, the mean over the questions; 0 to 100.

    A question is a sentence of a reference whose entity, or a number that is in none, is blank; events and dates count
    where the tagger knows them. `apes_src` compares what the summary answers with what the source does: of the source
    the sentences are read that are chosen greedily by ROUGE-2 recall of the whole reference, in the source's order.
    `apes` compares what the summary answers with what was left out. Texts that are longer than the model are read in
    windows. Questions of several references count alike. A document without a question scores 0, whatever its summary.

    Args:
        answers: the model that reads.
        tags: finds the entities of references.
    """

    figures: ClassVar = {"apes_src": Figure("APES_src"), "apes": Figure("APES")}
    reads_source: ClassVar[bool] = True
    in_workers: ClassVar[bool] = False
    batch_size: ClassVar[int] = 4

    def __init__(self, answers: Answers, tags: Tags, language: str = "en") -> None:
        self._language = Language(language)
        self._answers = answers
        self._tags = tags
        self._documents = self._unasked = self._questions = 0

    def fit(self, examples: Iterable[Example]) -> None:
        """Count anew how many questions there are."""
        self._documents = self._unasked = self._questions = 0

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        """Return (documents, 2)."""
        asked = [question for n, example in enumerate(examples) for question in self._asked(n, example)]
        # Each question is asked of the summary, then of the source.
        summaries = [normalize(example.prediction) for example in examples]
        pairs = [Question(one.cloze.question, summaries[one.example]) for one in asked]
        pairs += [Question(one.cloze.question, one.context) for one in asked]
        answers = self._answers.answers(pairs)
        by_example: list[list[tuple[float, float]]] = [[] for _ in examples]
        for one, of_summary, of_source in zip(asked, answers, answers[len(asked) :], strict=False):
            f1 = answer_f1(of_summary, of_source), answer_f1(of_summary, one.cloze.answer)
            by_example[one.example].append(f1)
        self._documents += len(examples)
        self._questions += len(asked)
        self._unasked += sum(not found for found in by_example)
        return np.array([100 * np.mean(found, axis=0) if found else np.zeros(2) for found in by_example])

    def _asked(self, number: int, example: Example) -> list[_Asked]:
        source = self._language.sentences(example.source or "")
        asked = []
        for reference in example.references:
            sentences = self._language.sentences(reference)
            context = " ".join(source[index] for index in sorted(covering(source, reference)))
            for sentence, entities in zip(sentences, self._tags.entities(sentences), strict=True):
                found = clozes(sentence, entities, self._answers.blank)
                asked += [_Asked(number, cloze, context) for cloze in found]
        return asked

    def signature(self) -> str:
        """Name both models and the settings."""
        return (
            f"APES_src | answers: {self._answers.signature()} | entities: {self._tags.signature()}, and numbers | "
            f"blank {self._answers.blank} | context: greedy ROUGE-2 recall of the reference | F1 of words"
        )

    def remarks(self) -> list[str]:
        """Say how many documents have no question."""
        if not self._unasked:
            return []
        return [
            f"apes_src: the references of {self._unasked:,} of {self._documents:,} documents hold no entity and no "
            "number, so nothing was asked about them and they score 0."
        ]


@METRICS.register("apes_src")
def apes_src(
    qa_model: str | None = None, tagger: str | None = None, device: str = "cpu", language: str = "en"
) -> ApesSrc:
    """Load both models."""
    # torch takes seconds to import: only when it is needed.
    from pyramidions.scoring.encoders.entity_tagger import EntityTagger
    from pyramidions.scoring.encoders.question_answerer import QuestionAnswerer

    return ApesSrc(QuestionAnswerer.of(qa_model, device), EntityTagger.of(tagger, device), language)
