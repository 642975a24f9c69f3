"""What a metric is, its options, and the registry of metrics."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from pyramidions.base.registry import Registry

METRICS: "Registry[Metric]" = Registry("metric")


class Example(NamedTuple):
    """A summary to score."""

    prediction: str  #: the summary
    references: tuple[str, ...]  #: summaries that people wrote of the same document, at least one
    source: str | None = None  #: the document; None where no metric reads it


class Figure(NamedTuple):
    """One number of a metric."""

    label: str  #: its heading
    better: Literal["higher", "lower"] | None = "higher"  #: None where the figure describes and does not judge
    bounded: bool = True  #: whether a figure that judges goes from 0 to 100; one that does not has no worst value

    @property
    def digits(self) -> int:
        """How many digits behind the point tell systems apart."""
        return 2 if self.bounded else 3


class Metric(ABC):
    """A way to score summaries, registered in `METRICS`; those of `pyramidions.scoring.metrics` are.

    A metric takes its options as arguments of its constructor, named as in `MetricOptions`. What it needs
    besides (weights, libraries) it loads there, so that a user learns of what is missing before anything is scored.
    """

    # What it measures, by the names that logs and files have. No two metrics have a name in common.
    figures: ClassVar[Mapping[str, Figure]]
    reads_source: ClassVar[bool] = False  # whether it needs `Example.source`
    # Whether it may run in several processes, as what is cheap and has no weights does. The instance is pickled then.
    in_workers: ClassVar[bool] = True
    batch_size: ClassVar[int] = 16  # how many examples it gets at a time

    # Most metrics have nothing to learn.
    def fit(self, examples: Iterable[Example]) -> None:  # noqa: B027
        """Learn what depends on all documents of a system, such as how rare a word is; called once, before `score`."""

    def score(self, examples: Sequence[Example]) -> np.ndarray:
        """Return the figures of examples: (documents, figures), in the order of `figures`.

        An empty prediction gets the worst of each figure that judges. Where the figure is not bounded, it gets what the
        model gives an empty text.
        """
        return np.array([self.of(example) for example in examples])

    def of(self, example: Example) -> Sequence[float]:
        """Return the figures of one example, where a metric looks at one at a time: (figures,)."""
        raise NotImplementedError

    @abstractmethod
    def signature(self) -> str:
        """Say all that determines the figures: implementation, version, model and settings, joined by " | "."""

    def remarks(self) -> list[str]:
        """What a reader of the figures must know, in sentences, such as how many texts were truncated since `fit`."""
        return []


class CountingMetric(Metric):
    """A metric that counts what its remarks are about, anew for each system."""

    # Counts of other processes would be lost.
    in_workers: ClassVar[bool] = False

    def __init__(self) -> None:
        #: Of the documents since `fit`, by what is counted.
        self.counts: Counter[str] = Counter()

    def fit(self, examples: Iterable[Example]) -> None:
        self.counts.clear()


def truncated_pairs(metric: str, counts: Mapping[str, int], what: str) -> list[str]:
    """Return the remark on ``truncated`` of ``pairs`` of texts, if there is one."""
    if not counts["truncated"]:
        return []
    share = f"{counts['truncated']:,} of {counts['pairs']:,} pairs {what}"
    return [f"{metric}: {share} are longer than the model reads and were truncated."]


class Question(NamedTuple):
    """A question and the text that it is asked of."""

    question: str
    text: str


class Span(NamedTuple):
    """Where in a sentence an entity stands, in characters."""

    start: int
    end: int


class Judged(NamedTuple):
    """What a claim was found to be by each of some premises."""

    probabilities: np.ndarray  #: (premises, 2), of entailment and of contradiction
    truncated: int  #: for how many premises one of both was truncated


@runtime_checkable
class EntailmentJudge(Protocol):
    """Tells whether premises entail a claim."""

    is_binary: bool  #: What is not entailed counts as contradicted.

    def judged(self, premises: Sequence[str], claim: str) -> Judged:
        """Return what a claim is found to be by each premise."""


class Rated(NamedTuple):
    """What a model gives to pairs of texts."""

    values: np.ndarray  #: (pairs,)
    truncated: int  #: of how many pairs a text was truncated


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class MetricOptions:
    """Options of metrics; each metric takes those that its constructor names.

    The metadata of each has its help, from which the flags of commands are made.
    """

    language: str = _option("en", "Language of the summaries, an ISO 639-1 code: words, stems and where sentences end.")
    tokenization: str | None = _option(
        None, "What ROUGE and METEOR compare: ascii, words or characters.  [default: the language's]"
    )
    stemmer: str | None = _option(None, "Their stemmer: none, porter or snowball.  [default: the language's]")
    embedding_model: str | None = _option(None, "Encoder of BERTScore and MoverScore: a folder or a name on the hub.")
    embedding_layer: int | None = _option(
        None,
        "Layer of it whose vectors are compared, counted from 1.  [default: for BERTScore the one that is recommended "
        "for a well-known model, else the last]",
    )
    bertscore_idf: bool = _option(False, "Weigh tokens in BERTScore by how rare they are among all references.")
    stop_words: str | None = _option(None, "File of words that MoverScore leaves out.  [default: none]")
    qa_model: str | None = _option(None, "Model of APES that answers questions: a folder or a name on the hub.")
    tagger: str | None = _option(None, "Token classifier that finds entities: a folder or a name on the hub.")
    entailment_model: str | None = _option(
        None, "Classifier that tells entailment and contradiction: a folder or a name on the hub."
    )
    entailment_premise: str = _option(
        "sentences", "What it reads of a document: each of its sentences, or the whole document, truncated."
    )
    bartscore_model: str | None = _option(
        None, "Sequence-to-sequence model of BARTScore, such as BART: a folder or a name on the hub."
    )
    bleurt_model: str | None = _option(None, "Model of BLEURT, with one label: a folder or a name on the hub.")
    wordnet: str | None = _option(None, "Folder of WordNet's database files, for the synonyms of METEOR.")
    device: str = _option("cpu", "Device of these models, such as cuda.")
