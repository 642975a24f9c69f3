"""What every task of ours does for a training run: whole batches, runs that resume exactly, and losses of parts."""

from abc import ABC
from argparse import ArgumentParser
from typing import Any, ClassVar, Optional

import torch
from fairseq.data import Dictionary
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask

from pyramidions.base.errors import UserError
from pyramidions.models.formats import refuse_older_checkpoint
from pyramidions.plugin.criterions.collapse import CollapseWatch
from pyramidions.plugin.hooks import (
    WHOLE_BATCHES,
    begin_with_fillers,
    check_options,
    end_workers_with_their_epoch,
    is_first_worker,
    model_name,
    run_of,
)
from pyramidions.plugin.tasks.learning import ScorerRate, WithRegulariser, log_regulariser
from pyramidions.plugin.tasks.schedule import check_run
from pyramidions.plugin.tasks.start import check_given
from pyramidions.plugin.tasks.training_run import TrainingRun

#: What our models do, and a task that trains them, by the name of their class.
_MODELS = {
    "pyramidion": ("writes", "long_document_summarization"),
    "pyramidion_extractor": ("rates sentences", "extractive_summarization"),
    "pyramidion_lm": ("predicts characters", "character_language_modeling"),
}


class TrainingTask(FairseqTask, ABC):
    """A task whose runs resume exactly, keep their checkpoints whole, and stop in time."""

    #: of source and target
    dictionary: Dictionary
    #: what a model of this task does, one of the values of `_MODELS`
    model_does: ClassVar[str] = "writes"

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        check_options(type(self), cfg)
        check_given(run_of(cfg))
        self._training: Optional[TrainingRun] = None
        self._scorers = CollapseWatch()

    @property
    def source_dictionary(self) -> Dictionary:
        return self.dictionary

    target_dictionary = source_dictionary

    @classmethod
    def setup_task(cls, cfg: Any, **unused: Any) -> Any:
        """Make the task; `fairseq-validate` says that a checkpoint is its source, which changes nothing here."""
        return cls(cfg)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        super().add_args(parser)
        # By default the first of several processes sends the checkpoint to the others as pickled objects, which the
        # safe loading of torch refuses: no run on several GPUs could resume.
        parser.set_defaults(load_checkpoint_on_all_dp_ranks=True)

    def begin_training(self, from_checkpoint: bool) -> Optional[TrainingRun]:
        """Begin or go on with the run, unless there is none; return it."""
        run = run_of(self.cfg)
        if run is not None and not from_checkpoint:
            check_run(run, self.cfg.stopping_patience)
            self._training = TrainingRun(run, self.cfg.stopping_patience)
            self._training.begin()
        return self._training

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model, and begin or go on with its training."""
        if from_checkpoint:
            refuse_older_checkpoint("The checkpoint", cfg)
        self.check_kind(cfg)
        training = self.begin_training(from_checkpoint)
        if training is not None and not from_checkpoint:
            self.check_model(cfg)
            training.start.check_parts(cfg)
        model = super().build_model(cfg, from_checkpoint)
        if training is not None:
            training.trains(model, self.begin_learning(model, training))
        return model

    def check_kind(self, cfg: Any) -> None:
        does, task = _MODELS.get(model_name(cfg), (self.model_does, ""))
        if does != self.model_does:
            raise UserError(
                f"--task {self.cfg._name} needs a model that {self.model_does}, but --arch names one that {does}: "
                f"use another --arch, or --task {task}."
            )

    def check_model(self, cfg: Any) -> None:
        """Refuse a model that does not suit the data, before it is trained; by default, any does."""

    def begin_learning(self, model: Any, training: TrainingRun) -> Optional[ScorerRate]:
        """Settle which parts of a model learn; return the rate of its scorers if that is another."""
        return None

    def validation_only_metrics(self) -> list[str]:
        """Return the metrics that the task logs at validation, but not in training; by default, there are none."""
        return []

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs besides: how long it has made no progress."""
        if self._training is None:
            return {}
        # Asked for by the process that saves, right before it does.
        self._training.before_saving()
        return {type(self).__name__: self._training.stopping.state_dict()}

    def set_checkpoint_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on as the run that wrote the checkpoint would have."""
        if self._training is not None:
            self._training.stopping.load_state_dict(state_dict)

    def post_save(self, path: str, num_updates: int) -> None:
        if self._training is not None:
            self._training.saved(path)

    def get_batch_iterator(self, dataset: Any, max_tokens: Any = None, **kwargs: Any) -> Any:
        """Return an iterator over batches that hold every example."""
        batches = super().get_batch_iterator(dataset, max_tokens, **{**kwargs, **WHOLE_BATCHES})
        end_workers_with_their_epoch(batches, dataset)
        if self._training is not None and dataset is self.datasets.get(self._training.run.dataset.train_subset):
            begin_with_fillers(batches, self._training.run.optimization.update_freq)
            self._training.epoch = batches
        return batches

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Compute the loss of a batch, with those that parts of the model have, and its gradients."""
        if self._training is not None:
            self._training.before_step(update_num, optimizer)
        step: tuple[Any, Any, dict[str, Any]] = super().train_step(
            sample, model, WithRegulariser(criterion), optimizer, update_num, ignore_grad
        )
        if not ignore_grad:
            return step
        # Another batch stands for an empty one, and counts nothing. Workers must log alike, to the type.
        loss, sample_size, logged = step
        nothing = {name: torch.zeros_like(x) if torch.is_tensor(x) else type(x)() for name, x in logged.items()}
        return loss, 0 * sample_size, nothing

    def optimizer_step(self, optimizer: Any, model: Any, update_num: int) -> None:
        """Update the weights, and see whether it is time to save them."""
        super().optimizer_step(optimizer, model, update_num)
        if self._training is not None:
            self._training.updated(update_num + 1, model)

    def post_validate(self, model: Any, stats: dict[str, Any], agg: Any) -> None:
        """Take note of a validation's metrics, by name."""
        if self._training is not None:
            self._training.validated(stats)

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """Log the criterion's metrics, and the losses that parts of the model have."""
        with metrics.aggregate() as logged:
            super().reduce_metrics(logging_outputs, criterion)
        log_regulariser(logging_outputs)
        if self._training is not None:
            self._training.logged([*logged, *self.validation_only_metrics()], criterion)
        if is_first_worker(self.cfg):
            self._scorers.look(logging_outputs)
