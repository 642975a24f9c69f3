"""What a metric is, and the registry of them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from pyramidions.base.registry import Registry

METRICS: "Registry[Metric]" = Registry("metric")


class Example(NamedTuple):
    """A summary to score.

    Attributes:
        prediction: the summary.
        references: summaries that people wrote of the same document, at least one.
        source: the document; None where it is not at hand, and no metric that reads it is asked for.
    """

    prediction: str
    references: tuple[str, ...]
    source: str | None = None


class Figure(NamedTuple):
    """One number of a metric.

    Attributes:
        label: its heading.
        better: whether higher or lower figures are better; None where the figure describes and does not judge.
    """

    label: str
    better: Literal["higher", "lower"] | None = "higher"


class Metric(ABC):
    """A way to score summaries: one file of `pyramidions.scoring.metrics`, registered in `METRICS`.

    A metric takes its options as arguments of its constructor, named as in `MetricOptions`. What it needs
    besides (weights, libraries) it loads there, so that a user learns of what is missing before anything is scored.

    Attributes:
        figures: what it measures, by the names that logs and files have. No two metrics have a name in common.
        reads_source: whether it needs `Example.source`.
        in_workers: whether it may run in several processes, as what is cheap and has no weights does. The instance is
            pickled then.
        batch_size: how many examples it gets at a time.
    """

    figures: ClassVar[Mapping[str, Figure]]
    reads_source: ClassVar[bool] = False
    in_workers: ClassVar[bool] = True
    batch_size: ClassVar[int] = 16

    # Most metrics have nothing to learn.
    def fit(self, examples: Iterable[Example]) -> None:  # noqa: B027
        """Learn what depends on all documents, such as how rare a word is; called once, before `score`.

        Args:
            examples: all of them, one at a time. The predictions are those of the system that is scored next.
        """

    @abstractmethod
    def score(self, examples: Sequence[Example]) -> np.ndarray:
        """Return the figures of examples: (documents, figures), in the order of `figures`.

        An empty prediction gets the worst of each figure that judges.
        """

    @abstractmethod
    def signature(self) -> str:
        """Say all that determines the figures: implementation, version, model and settings, joined by " | "."""

    def remarks(self) -> list[str]:
        """What a reader of the figures must know, in sentences, such as how many texts were truncated since `fit`."""
        return []
