"""Every metric of the summaries that validation writes, as sums that workers can add up."""

from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Any

from fairseq.data import BaseWrapperDataset
from fairseq.logging import metrics

from pyramidions.scoring import FIGURES, Example, Metric
from pyramidions.scoring.examples import Examples
from pyramidions.text.tokenizer import Tokenizer

_COUNT = "_scored_documents"


class WithExamples(BaseWrapperDataset):
    """A dataset whose batches hold what the summary of each document is scored against, as ``examples``.

    Args:
        dataset: batches have ``id``, indices of documents.
        examples: by index; their predictions are not used.
        split: that they are of; batches hold it, too.
    """

    def __init__(self, dataset: Any, examples: Examples, split: str) -> None:
        super().__init__(dataset)
        self.examples = examples
        self.split = split

    def collater(self, samples: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """Make a batch."""
        batch: dict[str, Any] = self.dataset.collater(samples, **kwargs)
        if batch:
            batch["examples"] = [self.examples[index] for index in batch["id"].tolist()]
            batch["split"] = self.split
        return batch


class ValidationScores:
    """Decodes validation batches and scores them against the raw references.

    Args:
        generator: fairseq's beam search.
        tokenizer: turns hypotheses into text.
        scorers: the metrics by name.
    """

    def __init__(self, generator: Any, tokenizer: Tokenizer, scorers: Mapping[str, Metric]) -> None:
        self.generator = generator
        self.tokenizer = tokenizer
        self.scorers = scorers
        # What a metric learns of one split says nothing about another.
        self._of_splits: dict[str, dict[str, Metric]] = {}

    @property
    def reads_source(self) -> bool:
        """Whether any metric compares with the documents."""
        return any(metric.reads_source for metric in self.scorers.values())

    def fit(self, split: str, examples: Examples) -> None:
        """Let metrics learn from all references of a split; there are no summaries yet, so references stand for them.

        Args:
            split: whose documents they are.
            examples: whose predictions are references.
        """
        for metric in self._of(split).values():
            metric.fit(examples)

    def _of(self, split: str) -> dict[str, Metric]:
        """Return the metrics of a split; their models are those of all splits."""
        if split not in self._of_splits:
            self._of_splits[split] = {name: copy(metric) for name, metric in self.scorers.items()}
        return self._of_splits[split]

    def score(self, task: Any, sample: dict[str, Any], model: Any) -> dict[str, float]:
        """Return, of a batch of `WithExamples`, the sum of each figure and the number of documents."""
        hypotheses = task.inference_step(self.generator, [model], sample)
        texts = [self.tokenizer.decode(best[0]["tokens"].tolist()) for best in hypotheses]
        # fairseq makes plain tuples of named ones when it moves a batch to a GPU or to half precision.
        examples = [
            Example(text, references, source)
            for text, (_, references, source) in zip(texts, sample["examples"], strict=True)
        ]
        sums = {_COUNT: float(len(examples))}
        for metric in self._of(sample["split"]).values():
            of_batch = metric.score(examples).sum(axis=0)
            sums |= {_sum(name): float(total) for name, total in zip(metric.figures, of_batch, strict=True)}
        return sums

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]]) -> None:
        """Log the mean of each figure over all documents of all workers."""
        count = sum(float(log.get(_COUNT, 0)) for log in logging_outputs)
        if count == 0:
            return
        # Sums, which fairseq adds up over batches; what has a leading underscore is not displayed.
        metrics.log_scalar_sum(_COUNT, count)
        for name in FIGURES:
            if any(_sum(name) in log for log in logging_outputs):
                metrics.log_scalar_sum(_sum(name), sum(float(log.get(_sum(name), 0)) for log in logging_outputs))
                metrics.log_derived(name, partial(_mean, name=name))


def _sum(name: str) -> str:
    return f"_{name}_sum"


def _mean(meters: Any, name: str) -> float:
    return float(meters[_sum(name)].sum / meters[_COUNT].sum)
