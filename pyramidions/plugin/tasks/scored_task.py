"""Tasks whose models make summaries, which validation scores."""

from abc import ABC, abstractmethod
from typing import Any, Optional

from pyramidions.plugin.tasks.config import ScoredTaskConfig
from pyramidions.plugin.tasks.document_task import DocumentTask
from pyramidions.plugin.tasks.splits import examples_of
from pyramidions.plugin.tasks.validation_metrics import validation_metrics
from pyramidions.plugin.tasks.validation_scores import ValidationScores, WithExamples


class ScoredTask(DocumentTask, ABC):
    """A task that validates with summaries.

    Args:
        cfg: what the user said; ``eval_rouge`` and ``eval_metrics`` say what validates summaries.
    """

    cfg: ScoredTaskConfig

    def __init__(self, cfg: ScoredTaskConfig) -> None:
        super().__init__(cfg)
        self._validation: Optional[ValidationScores] = None

    @abstractmethod
    def validation_generator(self, model: Any) -> Any:
        """Return what writes summaries at validation."""

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model, and what validation needs to write summaries with it."""
        model = super().build_model(cfg, from_checkpoint)
        if metrics := validation_metrics(self.cfg):
            tokenizer = self.preprocessing.need_tokenizer()
            self._validation = ValidationScores(self.validation_generator(model), tokenizer, metrics)
        return model

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load a split, with what its summaries are scored against; log how much of it was truncated."""
        super().load_dataset(split, epoch, combine, **kwargs)
        if self._validation is not None and split != "train":
            dataset, reads_source = self.datasets[split], self._validation.reads_source
            examples = examples_of(self.preprocessing.folder, split, len(dataset), reads_source)
            self._validation.fit(split, examples)
            self.datasets[split] = WithExamples(dataset, examples, split)

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Compute the loss of a batch and, with --eval-metrics, summarize and score it."""
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self._validation is not None:
            logging_output.update(self._validation.score(self, sample, model))
        return loss, sample_size, logging_output

    def validation_only_metrics(self) -> list[str]:
        """Return the figures of the metrics that validate summaries."""
        scorers = {} if self._validation is None else self._validation.scorers
        return [figure for metric in scorers.values() for figure in metric.figures]

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """Log the criterion's metrics and the mean scores over all documents of all workers."""
        super().reduce_metrics(logging_outputs, criterion)
        if self._validation is not None:
            self._validation.reduce_metrics(logging_outputs)
