"""What every task on prepared documents does: whole batches, and runs that resume exactly."""

from abc import ABC
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, Optional

from fairseq.data import Dictionary
from fairseq.tasks import FairseqTask
from torch import Tensor

from pyramidions.errors import UserError
from pyramidions.tasks import decoding
from pyramidions.tasks.config import DocumentTaskConfig
from pyramidions.tasks.fine_tuning import begin_fine_tuning
from pyramidions.tasks.pair_dataset import PairDataset
from pyramidions.tasks.piece_codec import PieceCodec
from pyramidions.tasks.preprocessing import Preprocessing
from pyramidions.tasks.queries import check_model
from pyramidions.tasks.regularising import WithRegulariser, log_regulariser
from pyramidions.tasks.results_file import watch_results
from pyramidions.tasks.run_checkpoints import check_given
from pyramidions.tasks.run_checks import check_run
from pyramidions.tasks.run_config import is_first_worker, run_of
from pyramidions.tasks.schedule import warn_of_schedule
from pyramidions.tasks.splits import documents_alone
from pyramidions.tasks.training_run import TrainingRun


class DocumentTask(FairseqTask, ABC):
    """A task on documents in a folder made by `pyramidions prepare`.

    Lengths, the tokenizer and settings of generation travel in the checkpoint, so that generation needs no flag
    repeated. Longer texts are truncated, all are padded on the right, and none is ever dropped. A task proper says how
    texts become tokens (`preprocessing`), and loads splits.

    Args:
        cfg: what the user said.
    """

    cfg: DocumentTaskConfig
    preprocessing: Preprocessing
    #: loads a split, as `load_split` does
    loader: Callable[..., Any]
    #: whether models read the end of the text behind a document
    reads_end = True

    def __init__(self, cfg: DocumentTaskConfig) -> None:
        super().__init__(cfg)
        run = run_of(cfg)
        check_given(run)
        watch_results(run)
        self._training: Optional[TrainingRun] = None

    @classmethod
    def setup_task(cls, cfg: Any, **unused: Any) -> "DocumentTask":
        """Make the task; `fairseq-validate` says that a checkpoint is its source, which changes nothing here."""
        return cls(cfg)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add our flags; decoding flags of fairseq's lose their defaults to the checkpoint's."""
        super().add_args(parser)
        decoding.unset_defaults(parser)
        # Otherwise the first process of several sends the checkpoint to the others as pickled objects, which the
        # safe loading of torch refuses: no run on several GPUs could resume.
        parser.set_defaults(load_checkpoint_on_all_dp_ranks=True)
        # fairseq's own default is BLEU, which says little about summaries.
        parser.set_defaults(scoring="rouge")

    # What travels in the checkpoint

    def state_dict(self) -> dict[str, Any]:
        """Return lengths, the tokenizer, a task's own settings, and the pretrained model that training started from."""
        source = None if self._training is None else self._training.checkpoints.source
        return self.preprocessing.state_dict() | ({} if source is None else {"source": source})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take lengths, the tokenizer and settings from a checkpoint.

        Raises:
            UserError: they do not fit the data folder or the ensemble's other models.
        """
        self.preprocessing.load_state_dict(state_dict)

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to know beside: how long it has been without progress."""
        if self._training is None:
            return {}
        # Asked for by the process that saves, right before it does.
        self._training.checkpoints.before_saving()
        return {type(self).__name__: self._training.stopping.state_dict()}

    def set_checkpoint_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on as the run that wrote the checkpoint would have."""
        if self._training is not None:
            self._training.stopping.load_state_dict(state_dict)

    def post_save(self, path: str, num_updates: int) -> None:
        """Verify what has been saved."""
        if self._training is not None:
            self._training.checkpoints.saved(path)

    # Data

    @property
    def source_dictionary(self) -> Dictionary:
        """The one dictionary; its ids are the tokenizer's."""
        return self.preprocessing.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        """The one dictionary; its ids are the tokenizer's."""
        return self.preprocessing.dictionary

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load a split; log how much of it was truncated."""
        self.datasets[split] = self.loader(
            self.preprocessing, split, check_hashes=self.cfg.check_data, warn=is_first_worker(self.cfg)
        )

    def build_dataset_for_inference(
        self, src_tokens: list[Tensor], src_lengths: Any, constraints: Optional[Tensor] = None
    ) -> PairDataset:
        """Return documents without summaries and labels, truncated like any other."""
        if constraints is not None:
            raise UserError(f"--constraints is not supported by --task {self.preprocessing.task}.")
        return documents_alone(self.preprocessing, src_tokens, self.reads_end)

    def get_batch_iterator(
        self,
        dataset: Any,
        max_tokens: Optional[int] = None,
        max_sentences: Optional[int] = None,
        max_positions: Any = None,
        ignore_invalid_inputs: bool = False,
        required_batch_size_multiple: int = 1,
        disable_iterator_cache: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Return an iterator over batches that hold every document.

        Every text has been truncated to fit the model, so that nothing is left to filter; and batches may have any
        size, where fairseq's default multiple of 8 would drop the last ones. Which documents of equal length share a
        batch is drawn anew for each epoch: an iterator kept from the first one would draw otherwise than a resumed run.

        Raises:
            UserError: a document has more than ``max_tokens`` tokens.
        """
        longest = int(dataset.sizes.max())
        if max_tokens is not None and longest > max_tokens:
            raise UserError(
                f"--max-tokens must be at least {longest}, the tokens of the longest document or summary, "
                f"but is {max_tokens}."
            )
        batches = super().get_batch_iterator(
            dataset,
            max_tokens=max_tokens,
            max_sentences=max_sentences,
            max_positions=None,
            ignore_invalid_inputs=False,
            required_batch_size_multiple=1,
            disable_iterator_cache=True,
            **kwargs,
        )
        # Each epoch has a loader of its own. Workers that wait for another epoch would be ended by the garbage
        # collector, which closes their queues before they are told to stop: each would take five seconds to time out.
        batches.persistent_workers = False
        if self._training is not None and dataset is self.datasets.get(self._training.run.dataset.train_subset):
            if self._training.epoch is None:
                warn_of_schedule(self.cfg, len(batches))
            self._training.epoch = batches
        return batches

    def build_bpe(self, args: Any) -> PieceCodec:
        """Return the tokenizer as fairseq's commands use it: between text and pieces joined by spaces.

        Raises:
            UserError: the user asks for another one.
        """
        other = args if isinstance(args, str) else getattr(args, "_name", None)
        if other is not None:
            raise UserError(f"The tokenizer is the data's or the checkpoint's, but --bpe asks for {other!r}.")
        return PieceCodec(self.preprocessing.need_tokenizer(), self.preprocessing.has_queries)

    # Training

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model, and begin or go on with its training."""
        self.preprocessing.need_tokenizer()
        check_run(self.cfg)
        run = run_of(self.cfg)
        if run is not None and not from_checkpoint:
            self._training = TrainingRun(run, self.cfg.stopping_patience)
            self._training.begin()
            self.preprocessing.learn_queries()
            check_model(cfg, self.preprocessing)
            self._training.checkpoints.check_parts(cfg)
        model = super().build_model(cfg, from_checkpoint)
        if self._training is not None:
            rate = begin_fine_tuning(self.cfg, model, self.preprocessing.length("max_source_positions"))
            self._training.trains(model, rate)
        return model

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Compute the loss of a batch, with those that parts of the model have, and its gradients."""
        if self._training is not None:
            self._training.before_step(optimizer)
        step: tuple[Any, Any, dict[str, Any]] = super().train_step(
            sample, model, WithRegulariser(criterion), optimizer, update_num, ignore_grad
        )
        return step

    def post_validate(self, model: Any, stats: dict[str, Any], agg: Any) -> None:
        """Take note of a validation's metrics, by name."""
        if self._training is not None:
            self._training.validated(stats)

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """Log the criterion's metrics, and the losses that parts of the model have."""
        super().reduce_metrics(logging_outputs, criterion)
        log_regulariser(logging_outputs)
