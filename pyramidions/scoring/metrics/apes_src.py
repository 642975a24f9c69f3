"""APES (Eyal, Baumel and Elhadad, 2019) and APES_src (Huang, Cao, Parulian, Ji and Wang, 2021)."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from pyramidions.extract.oracle import covering
from pyramidions.scoring.metric import METRICS, CountingMetric, Example, Figure, Question, Span
from pyramidions.scoring.metrics.entities import name_words
from pyramidions.text.language import Language
from pyramidions.text.normalization import SPLITTER, normalize

# torch takes seconds to import: only when it is needed.
if TYPE_CHECKING:
    from pyramidions.scoring.encoders.readers import EntityTagger, QuestionAnswerer

# A number, a date in figures, or an amount of money.
_NUMBER = re.compile(r"(?<!\w)[$€£¥]?\d+(?:[.,:/-]\d+)*%?(?!\w)")
_ARTICLES = ("a", "an", "the")


class Cloze(NamedTuple):
    """A sentence with a blank, and the answer."""

    question: str
    answer: str


class _Asked(NamedTuple):
    """A cloze question about a reference, and the context that is read for its answer."""

    example: int
    cloze: Cloze
    context: str


class ApesSrc(CountingMetric):
    """Asks questions about the references; F1 of the words of answers, the mean over the questions; 0 to 100.

    A question is a sentence of a reference whose entity, or a number that is in none, is blank; events and dates count
    where the tagger knows them. `apes_src` compares what the summary answers with what the source does: of the source
    the sentences are read that are chosen greedily by ROUGE-2 recall of the whole reference, in the source's order.
    `apes` compares what the summary answers with what was left out. Texts that are longer than the model are read in
    windows. Questions of several references count alike. A document without a question scores 0, whatever its summary.
    """

    figures: ClassVar = {"apes_src": Figure("APES_src"), "apes": Figure("APES")}
    reads_source: ClassVar[bool] = True
    batch_size: ClassVar[int] = 4

    def __init__(self, answers: "QuestionAnswerer", tags: "EntityTagger", language: str = "en") -> None:
        super().__init__()
        self._language = Language(language)
        self._answers = answers
        self._tags = tags

    def score(self, examples: Sequence[Example]) -> np.ndarray:
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
        self.counts.update(documents=len(examples), unasked=sum(not found for found in by_example))
        return np.array([100 * np.mean(found, axis=0) if found else np.zeros(2) for found in by_example])

    def _asked(self, number: int, example: Example) -> list[_Asked]:
        source = self._language.sentences(example.source or "")
        asked = []
        for reference in example.references:
            sentences = self._language.sentences(reference)
            context = " ".join(source[index] for index in sorted(covering(source, reference, self._language.code)))
            for sentence, entities in zip(sentences, self._tags.entities(sentences), strict=True):
                found = clozes(sentence, entities, self._answers.blank)
                asked += [_Asked(number, cloze, context) for cloze in found]
        return asked

    def signature(self) -> str:
        return (
            f"APES_src | answers: {self._answers.signature()} | entities: {self._tags.signature()}, and numbers | "
            f"blank {self._answers.blank} | context: greedy ROUGE-2 recall of the reference | "
            f"sentences: {SPLITTER}, language {self._language.code} | F1 of words"
        )

    def remarks(self) -> list[str]:
        if not self.counts["unasked"]:
            return []
        share = f"{self.counts['unasked']:,} of {self.counts['documents']:,}"
        return [
            f"apes_src: the references of {share} documents hold no entity and no number, so nothing was asked about "
            "them and they score 0."
        ]


@METRICS.register("apes_src")
def apes_src(
    qa_model: str | None = None, tagger: str | None = None, device: str = "cpu", language: str = "en"
) -> ApesSrc:
    from pyramidions.scoring.encoders.readers import EntityTagger, QuestionAnswerer

    return ApesSrc(QuestionAnswerer(qa_model, device), EntityTagger(tagger, device), language)


def clozes(sentence: str, entities: Sequence[Span], blank: str) -> list[Cloze]:
    """Leave out each entity of a sentence in turn, and each number that is in none; ``blank`` takes its place."""
    numbers = (Span(*found.span()) for found in _NUMBER.finditer(sentence))
    free = [span for span in numbers if not any(span.start < e.end and e.start < span.end for e in entities)]
    return [
        Cloze(sentence[: span.start] + blank + sentence[span.end :], sentence[span.start : span.end])
        for span in sorted([*entities, *free])
    ]


def answer_f1(answer: str, expected: str) -> float:
    """Return the F1 of the words of two answers, as in SQuAD (Rajpurkar et al. 2016): in lower case, without articles.

    It is 0 if either has no word.
    """
    given, wanted = (Counter(word for word in name_words(text) if word not in _ARTICLES) for text in (answer, expected))
    shared = (given & wanted).total()
    return 2 * shared / (given.total() + wanted.total()) if shared else 0.0
