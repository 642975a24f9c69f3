"""What every task on prepared documents does: lengths and tokenizer travel in the checkpoint, summaries are scored."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Optional

from fairseq.data import Dictionary
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.models.config import MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS
from pyramidions.plugin.hooks import block_ngrams, is_first_worker, run_of, unset_defaults, watch_results
from pyramidions.plugin.tasks import decoding
from pyramidions.plugin.tasks.config import DocumentTaskConfig
from pyramidions.plugin.tasks.datasets import PairDataset
from pyramidions.plugin.tasks.learning import ScorerRate, begin_fine_tuning
from pyramidions.plugin.tasks.preprocessing import PieceCodec, Preprocessing, Setting
from pyramidions.plugin.tasks.queries import check_query_model
from pyramidions.plugin.tasks.schedule import warn_of_poolings, warn_of_schedule
from pyramidions.plugin.tasks.splits import documents_alone, examples_of
from pyramidions.plugin.tasks.training_run import TrainingRun
from pyramidions.plugin.tasks.training_task import TrainingTask
from pyramidions.plugin.tasks.validation import ValidationScores, WithExamples, check_best, validation_metrics


class DocumentTask(TrainingTask):
    """A task on documents in a folder made by `pyramidions prepare`.

    Lengths, the tokenizer and settings of generation travel in the checkpoint, so that generation needs no flag
    repeated. Longer texts are truncated, all are padded on the right, and none is ever dropped. A task proper says how
    texts become tokens (`preprocessing`), and loads splits. Validation scores what the model writes where ``cfg`` has
    ``eval_metrics``.
    """

    cfg: DocumentTaskConfig
    preprocessing: Preprocessing
    #: loads a split, as `load_split` does
    loader: Callable[..., Any]
    #: whether models read the end of the text behind a document
    reads_end = True

    def __init__(self, cfg: DocumentTaskConfig) -> None:
        super().__init__(cfg)
        self._validation: Optional[ValidationScores] = None
        watch_results(run_of(cfg))

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add our flags; decoding flags of fairseq's lose their defaults to the checkpoint's."""
        super().add_args(parser)
        unset_defaults(parser, decoding.FIELDS)
        # fairseq's own default is BLEU, which says little about summaries.
        parser.set_defaults(scoring="rouge")

    # What travels in the checkpoint

    def state_dict(self) -> dict[str, Any]:
        """Return lengths, the tokenizer, a task's own settings, and the pretrained model that training started from."""
        source = None if self._training is None else self._training.start.source
        return self.preprocessing.state_dict() | ({} if source is None else {"source": source})

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.preprocessing.load_state_dict(state_dict)

    # Data

    @property
    def dictionary(self) -> Dictionary:
        """The one dictionary; its ids are the tokenizer's."""
        return self.preprocessing.dictionary

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load a split, with what its summaries are scored against; log how much of it was truncated."""
        dataset = self.loader(
            self.preprocessing, split, check_hashes=self.cfg.check_data, warn=is_first_worker(self.cfg)
        )
        is_trained_on = self._training is not None and split == self._training.run.dataset.train_subset
        if self._validation is not None and not is_trained_on:
            reads_source = self._validation.reads_source
            examples = examples_of(self.preprocessing.folder, split, len(dataset), reads_source)
            self._validation.fit(split, examples)
            dataset = WithExamples(dataset, examples, split)
        self.datasets[split] = dataset

    def build_dataset_for_inference(self, src_tokens: list[Tensor], src_lengths: Any, **unused: Any) -> PairDataset:
        """Return documents without summaries and labels, truncated like any other."""
        return documents_alone(self.preprocessing, src_tokens, self.reads_end)

    def get_batch_iterator(self, dataset: Any, max_tokens: Any = None, **kwargs: Any) -> Any:
        """Return an iterator over batches that hold every document; texts have been truncated to fit the model."""
        longest = int(dataset.sizes.max())
        if max_tokens is not None and longest > max_tokens:
            raise UserError(
                f"--max-tokens must be at least {longest}, the tokens of the longest document or summary, "
                f"but is {max_tokens}."
            )
        begins = self._training is not None and self._training.epoch is None
        batches = super().get_batch_iterator(dataset, max_tokens, **kwargs)
        if begins and self._training is not None and self._training.epoch is not None:
            warn_of_schedule(self.cfg, len(batches))
        return batches

    def build_bpe(self, args: Any) -> PieceCodec:
        """Return the tokenizer as fairseq's commands use it: between text and pieces joined by spaces."""
        other = args if isinstance(args, str) else getattr(args, "_name", None)
        if other is not None:
            raise UserError(f"The tokenizer is the data's or the checkpoint's, but --bpe asks for {other!r}.")
        return PieceCodec(self.preprocessing.need_tokenizer(), self.preprocessing.has_queries)

    # Training

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model, begin or go on with its training, and build what validation needs to score it."""
        tokenizer = self.preprocessing.need_tokenizer()
        check_best(self.cfg)
        model = super().build_model(cfg, from_checkpoint)
        if metrics := validation_metrics(self.cfg):
            self._validation = ValidationScores(self.validation_generator(model), tokenizer, metrics)
        return model

    def validation_generator(self, model: Any) -> Any:
        """Return what writes summaries at validation, for a task whose ``cfg`` has metrics."""
        raise NotImplementedError

    def check_model(self, cfg: Any) -> None:
        """Refuse a model that does not suit the data, once it is known whether documents come with queries."""
        self.preprocessing.learn_queries()
        check_query_model(cfg, self.preprocessing)

    def begin_learning(self, model: Any, training: TrainingRun) -> Optional[ScorerRate]:
        """Freeze and warm up what the user said, and let a model that fine-tunes add its scorers and pointer."""
        model.may_add_parts = training.start.fine_tunes
        longest = self.preprocessing.length("max_source_positions")
        if is_first_worker(self.cfg):
            warn_of_poolings(model, longest)
        return begin_fine_tuning(self.cfg, model, longest)

    # Validation

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Any, Any, dict[str, Any]]:
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self._validation is not None:
            logging_output.update(self._validation.score(self, sample, model))
        return loss, sample_size, logging_output

    def validation_only_metrics(self) -> list[str]:
        scorers = {} if self._validation is None else self._validation.scorers
        return [figure for metric in scorers.values() for figure in metric.figures]

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """Log the criterion's metrics and the mean scores over all documents of all workers."""
        super().reduce_metrics(logging_outputs, criterion)
        if self._validation is not None:
            self._validation.reduce_metrics(logging_outputs)


class WritingTask(DocumentTask):
    """A task whose model reads one text and writes another."""

    def __init__(
        self, cfg: DocumentTaskConfig, task: str, settings: Mapping[str, Setting] = MappingProxyType({})
    ) -> None:
        super().__init__(cfg)
        lengths = {
            "max_source_positions": Setting(cfg.max_source_positions, MAX_SOURCE_POSITIONS, is_needed=True),
            "max_target_positions": Setting(cfg.max_target_positions, MAX_TARGET_POSITIONS, is_needed=True),
        }
        self.preprocessing = Preprocessing(DataFolder(cfg.data), task, {**lengths, **settings})

    def max_positions(self) -> tuple[int, int]:
        return self.preprocessing.length("max_source_positions"), self.preprocessing.length("max_target_positions")

    def build_generator(self, models: list[Any], args: Any, *rest: Any, **kwargs: Any) -> Any:
        """Build fairseq's generator with the user's settings, else the models' own."""
        decoding.check_heeded(args, self.preprocessing.task)
        decoding.fill_in(args, models)
        generator = super().build_generator(models, args, *rest, **kwargs)
        block_ngrams(generator, args.no_repeat_ngram_size)
        return generator

    def inference_step(
        self, generator: Any, models: list[Any], sample: Any, prefix_tokens: Optional[Tensor] = None, **kwargs: Any
    ) -> Any:
        """Write a text for each of a batch; it begins with the tokenizer's prefix unless another is given, or none."""
        prefix, source = self.preprocessing.need_tokenizer().prefix, sample["net_input"]["src_tokens"]
        starts = {getattr(getattr(model, "config", None), "decoding_forced_start", "yes") for model in models}
        if prefix_tokens is None and prefix and "no" not in starts:
            prefix_tokens = source.new_tensor(prefix).repeat(len(source), 1)
        return super().inference_step(generator, models, sample, prefix_tokens, **kwargs)
