"""Every metric of beam search during validation, as sums that workers can add up."""

from functools import partial
from typing import Any

from fairseq.data import BaseWrapperDataset
from fairseq.logging import metrics

from pyramidions.scoring import LABELS
from pyramidions.scoring.scores import document_scores
from pyramidions.text.tokenizer import Tokenizer

_COUNT = "_scored_documents"


class WithReferences(BaseWrapperDataset):
    """A dataset whose batches hold the raw reference of each document, as ``references``.

    Args:
        dataset: batches have ``id``, indices of documents.
        references: the raw summaries by index.
    """

    def __init__(self, dataset: Any, references: list[str]) -> None:
        super().__init__(dataset)
        self.references = references

    def collater(self, samples: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """Make a batch."""
        batch: dict[str, Any] = self.dataset.collater(samples, **kwargs)
        if batch:
            batch["references"] = [self.references[index] for index in batch["id"].tolist()]
        return batch


class ValidationScores:
    """Decodes validation batches and scores them against the raw references.

    Args:
        generator: fairseq's beam search.
        tokenizer: turns hypotheses into text.
    """

    def __init__(self, generator: Any, tokenizer: Tokenizer) -> None:
        self.generator = generator
        self.tokenizer = tokenizer

    def score(self, task: Any, sample: dict[str, Any], model: Any) -> dict[str, float]:
        """Return, of a batch of `WithReferences`, the sum of each figure and the number of documents."""
        sums = dict.fromkeys(map(_sum, LABELS), 0.0)
        hypotheses = task.inference_step(self.generator, [model], sample)
        for best, reference in zip(hypotheses, sample["references"], strict=True):
            scores = document_scores(self.tokenizer.decode(best[0]["tokens"].tolist()), reference)
            for name, score in scores.items():
                sums[_sum(name)] += score
        return {**sums, _COUNT: float(len(hypotheses))}

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]]) -> None:
        """Log the mean of each metric over all documents of all workers."""
        count = sum(float(log.get(_COUNT, 0)) for log in logging_outputs)
        if count == 0:
            return
        # Sums, which fairseq adds up over batches; what has a leading underscore is not displayed.
        metrics.log_scalar_sum(_COUNT, count)
        for name in LABELS:
            metrics.log_scalar_sum(_sum(name), sum(float(log.get(_sum(name), 0)) for log in logging_outputs))
            metrics.log_derived(name, partial(_mean, name=name))


def _sum(name: str) -> str:
    return f"_{name}_sum"


def _mean(meters: Any, name: str) -> float:
    return float(meters[_sum(name)].sum / meters[_COUNT].sum)
