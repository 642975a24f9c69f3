"""The task: long documents in, summaries out."""

import logging
from argparse import ArgumentParser
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
from fairseq.data import Dictionary, data_utils
from fairseq.dataclass import FairseqDataclass
from fairseq.tasks import FairseqTask, register_task
from omegaconf import MISSING
from torch import Tensor

from pyramidions.data.folder import DataFolder
from pyramidions.data.tokenizer import EOS, SPECIALS, Tokenizer
from pyramidions.data.verify import verify_split, verify_tokenizer
from pyramidions.errors import UserError
from pyramidions.models.config import MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS
from pyramidions.models.fields import parse_options
from pyramidions.tasks import decoding
from pyramidions.tasks.head_dataset import MUCH, HeadDataset
from pyramidions.tasks.optimizer_order import ResumedOrder
from pyramidions.tasks.pair_dataset import PairDataset
from pyramidions.tasks.piece_codec import PieceCodec
from pyramidions.tasks.results_file import watch_results
from pyramidions.tasks.run_checkpoints import RunCheckpoints, check_given
from pyramidions.tasks.run_checks import check_run, is_first_worker, run_of, warn_of_schedule
from pyramidions.tasks.stopping import StoppingRule
from pyramidions.tasks.validation_rouge import ValidationRouge, WithReferences

logger = logging.getLogger(__name__)


@dataclass
class LongDocumentSummarizationConfig(FairseqDataclass):
    """What the user may say about the data and its validation."""

    data: str = field(default=MISSING, metadata={"help": "folder made by `pyramidions prepare`"})
    max_source_positions: Optional[int] = field(
        default=None,
        metadata={
            "help": "most tokens of a document, the rest is cut off its end; "
            f"{MAX_SOURCE_POSITIONS}, or at generation what the checkpoint was trained with"
        },
    )
    max_target_positions: Optional[int] = field(
        default=None,
        metadata={"help": f"the same for its summary; {MAX_TARGET_POSITIONS}, or what the checkpoint says"},
    )
    eval_rouge: bool = field(
        default=False,
        metadata={"help": "validate with beam search and log rouge1, rouge2, rougeL, rougeLsum"},
    )
    eval_rouge_args: str = field(
        default="{}",
        metadata={
            "help": "generation arguments for --eval-rouge as a JSON object, e.g. '{\"beam\": 4}'; "
            "the rest is the model's own decoding settings"
        },
    )
    stopping_patience: int = field(
        default=0,
        metadata={
            "help": "end the run after this many validations at epoch ends without a better "
            "--best-checkpoint-metric, restarts or not; 0 never does"
        },
    )
    check_data: bool = field(
        default=False,
        metadata={"help": "read every byte of the data before it is used, and compare with the hashes in its manifest"},
    )


@register_task("long_document_summarization", dataclass=LongDocumentSummarizationConfig)
class LongDocumentSummarizationTask(FairseqTask):
    """Summarization of documents in a folder made by `pyramidions prepare`.

    Lengths and the tokenizer travel in the checkpoint, so that generation needs no flag repeated. Texts are padded
    on the right everywhere, cut at the head's end, and none is ever dropped.

    Args:
        cfg: what the user said.
    """

    cfg: LongDocumentSummarizationConfig

    def __init__(self, cfg: LongDocumentSummarizationConfig) -> None:
        super().__init__(cfg)
        check_given(run_of(cfg))
        watch_results(run_of(cfg))
        for name in ("max_source_positions", "max_target_positions"):
            value = getattr(cfg, name)
            if value is not None and value < 2:
                raise UserError(f"`{name}` must be at least 2, a token and the end of the text, but is {value}.")
        self.folder = DataFolder(cfg.data)
        self.dictionary = Dictionary()
        self.tokenizer: Optional[Tokenizer] = None
        self._lengths = {
            "max_source_positions": MAX_SOURCE_POSITIONS,
            "max_target_positions": MAX_TARGET_POSITIONS,
        }
        self._from_checkpoint: Optional[dict[str, Any]] = None
        self._rouge: Optional[ValidationRouge] = None
        self._stopping: Optional[StoppingRule] = None
        self._checkpoints: Optional[RunCheckpoints] = None
        self._order: Optional[ResumedOrder] = None
        if self.folder.sentencepiece_path.exists():
            verify_tokenizer(self.folder)
            self._use(self.folder.tokenizer())

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

    def _use(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        for piece in tokenizer.pieces()[len(SPECIALS) :]:
            self.dictionary.add_symbol(piece)

    # What travels in the checkpoint

    def state_dict(self) -> dict[str, Any]:
        """Return what generation needs to know: lengths and the tokenizer."""
        source, target = self.max_positions()
        tokenizer = self._need_tokenizer().model_bytes
        return {"max_source_positions": source, "max_target_positions": target, "tokenizer": tokenizer}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take lengths and the tokenizer from a checkpoint.

        Raises:
            UserError: it is no checkpoint of this task, or its tokenizer or lengths are not those of the data folder
                or of the ensemble's other models.
        """
        if "tokenizer" not in state_dict:
            raise UserError("The checkpoint was not trained with --task long_document_summarization.")
        if self.tokenizer is None:
            self._use(Tokenizer(state_dict["tokenizer"]))
        elif self.tokenizer.model_bytes != state_dict["tokenizer"]:
            other = "the ensemble's other models" if self._from_checkpoint else f"the data folder {self.cfg.data}"
            raise UserError(f"The checkpoint was trained with another tokenizer than that of {other}.")
        for name in self._lengths:
            if self._from_checkpoint and getattr(self.cfg, name) is None and state_dict[name] != self._lengths[name]:
                raise UserError(
                    f"The models of the ensemble were trained with `{name}` {self._lengths[name]} and "
                    f"{state_dict[name]}: give the flag --{name.replace('_', '-')}."
                )
            self._lengths[name] = state_dict[name]
        self._from_checkpoint = state_dict

    def max_positions(self) -> tuple[int, int]:
        """Return the most tokens of a document and of a summary: the flag, else the checkpoint's, else the default."""
        source, target = self.cfg.max_source_positions, self.cfg.max_target_positions
        return source or self._lengths["max_source_positions"], target or self._lengths["max_target_positions"]

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs to know beside: how long it has been without progress."""
        # Asked for by the process that saves, right before it does.
        if self._checkpoints is not None:
            self._checkpoints.before_saving()
        return {} if self._stopping is None else {type(self).__name__: self._stopping.state_dict()}

    def set_checkpoint_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on as the run that wrote the checkpoint would have."""
        if self._stopping is not None:
            self._stopping.load_state_dict(state_dict)

    def post_save(self, path: str, num_updates: int) -> None:
        """Verify what has been saved."""
        if self._checkpoints is not None:
            self._checkpoints.saved(path)

    # Data

    @property
    def source_dictionary(self) -> Dictionary:
        """The one dictionary; its ids are the tokenizer's."""
        return self.dictionary

    @property
    def target_dictionary(self) -> Dictionary:
        """The one dictionary; its ids are the tokenizer's."""
        return self.dictionary

    def _need_tokenizer(self) -> Tokenizer:
        # Called where there is neither a checkpoint nor data: the folder says what it lacks.
        return self.tokenizer or self.folder.tokenizer()

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load a split; say what was cut."""
        self._need_tokenizer()
        verify_split(self.folder, split, hashes=self.cfg.check_data)
        source = data_utils.load_indexed_dataset(self.folder.indexed(split, "source"), self.dictionary, "mmap")
        target = data_utils.load_indexed_dataset(self.folder.indexed(split, "target"), self.dictionary, "mmap")
        longest_source, longest_target = self.max_positions()
        documents = HeadDataset(source, source.sizes, longest_source, EOS)
        summaries = HeadDataset(target, target.sizes, longest_target, EOS)
        for texts, name, flag in (
            (documents, "documents", "--max-source-positions"),
            (summaries, "summaries", "--max-target-positions"),
        ):
            loud = texts.lost_share > MUCH and is_first_worker(self.cfg)
            advice = f": train with a higher {flag}; the longest has {texts.longest} tokens" if loud else ""
            logger.log(logging.WARNING if loud else logging.INFO, "%s: %s: %s%s", split, name, texts.report, advice)
        dataset = self._pairs(documents, summaries, shuffle=not split.startswith(("valid", "test")))
        if self._rouge is not None and split != "train":
            references = self.folder.references(split)
            if len(references) != len(target):
                path = self.folder.references_path(split)
                raise UserError(
                    f"{path} must have {len(target)} summaries, one for each document, but has {len(references)}."
                )
            dataset = WithReferences(dataset, [reference.summary for reference in references])
        self.datasets[split] = dataset

    def _pairs(self, documents: HeadDataset, summaries: Optional[HeadDataset], shuffle: bool) -> Any:
        return PairDataset(
            documents,
            documents.sizes,
            self.dictionary,
            summaries,
            None if summaries is None else summaries.sizes,
            self.dictionary,
            left_pad_source=False,
            left_pad_target=False,
            shuffle=shuffle,
        )

    def build_dataset_for_inference(
        self, src_tokens: list[Tensor], src_lengths: Any, constraints: Optional[Tensor] = None
    ) -> PairDataset:
        """Return documents without summaries, cut like any other."""
        if constraints is not None:
            raise UserError("--constraints is not supported by --task long_document_summarization.")
        sizes = np.array([len(text) for text in src_tokens])
        longest = self.max_positions()[0]
        if (sizes < 2).any():
            number = int((sizes < 2).argmax()) + 1
            raise UserError(f"Every document must hold text, but number {number} of those just read is empty.")
        documents = HeadDataset(src_tokens, sizes, longest, EOS)
        if (sizes > longest).any():
            logger.warning("documents: %s", documents.report)
        return self._pairs(documents, None, shuffle=False)

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

        Every text has been cut to fit the model, so that nothing is left to filter; and batches may have any size,
        where fairseq's default multiple of 8 would drop the last ones. Which documents of equal length share a batch
        is drawn anew for each epoch: an iterator kept from the first one would draw otherwise than a resumed run.

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
        if self._stopping is not None and dataset is self.datasets.get(self._stopping.run.dataset.train_subset):
            if self._stopping.epochs is None:
                warn_of_schedule(self.cfg, len(batches))
            self._stopping.epochs = batches
        return batches

    # Text

    def build_bpe(self, args: Any) -> PieceCodec:
        """Return the tokenizer as fairseq's commands use it: between text and pieces joined by spaces.

        Raises:
            UserError: the user asks for another one.
        """
        other = args if isinstance(args, str) else getattr(args, "_name", None)
        if other is not None:
            raise UserError(f"The tokenizer is the data's or the checkpoint's, but --bpe asks for {other!r}.")
        return PieceCodec(self._need_tokenizer())

    # Generation and validation

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model, and what validation needs to decode with it."""
        self._need_tokenizer()
        check_run(self.cfg)
        run = run_of(self.cfg)
        if run is not None and not from_checkpoint:
            self._stopping = StoppingRule(self.cfg.stopping_patience, run)
            self._checkpoints = RunCheckpoints(run)
            self._checkpoints.begin()
            # The plugin is loaded by now; where it lies on this machine is nothing that checkpoints should tell.
            run.common.user_dir = None
        model = super().build_model(cfg, from_checkpoint)
        if self._checkpoints is not None:
            self._order = ResumedOrder(model)
        if self.cfg.eval_rouge:
            args = decoding.from_options(parse_options(self.cfg.eval_rouge_args, "eval_rouge_args"))
            self._rouge = ValidationRouge(self.build_generator([model], args), self._need_tokenizer())
        return model

    def build_generator(self, models: list[Any], args: Any, *rest: Any, **kwargs: Any) -> Any:
        """Build fairseq's generator with the user's settings, else the models' own."""
        decoding.fill_in(args, models)
        generator = super().build_generator(models, args, *rest, **kwargs)
        if getattr(generator, "repeat_ngram_blocker", None) is not None:
            generator.repeat_ngram_blocker = decoding.NGramBlocker(args.no_repeat_ngram_size)
        return generator

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> tuple[Any, Any, dict[str, Any]]:
        """Do fairseq's step; whatever was to be saved before has been, and whatever was to be loaded."""
        if self._checkpoints is not None:
            self._checkpoints.trains()
        if self._order is not None:
            self._order.restore(optimizer)
        step = super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)
        loss, sample_size, logging_output = step
        return loss, sample_size, logging_output

    def valid_step(self, sample: dict[str, Any], model: Any, criterion: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Compute the loss of a batch and, with --eval-rouge, decode and score it."""
        loss, sample_size, logging_output = super().valid_step(sample, model, criterion)
        if self._rouge is not None:
            logging_output.update(self._rouge.score(self, sample, model))
        return loss, sample_size, logging_output

    def post_validate(self, model: Any, stats: dict[str, Any], agg: Any) -> None:
        """Count validations without progress."""
        if self._stopping is not None:
            self._stopping.validated(stats)
        if self._checkpoints is not None:
            self._checkpoints.validated(stats)

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """Log the criterion's metrics and the mean ROUGE over all documents of all workers."""
        super().reduce_metrics(logging_outputs, criterion)
        if self._rouge is not None:
            self._rouge.reduce_metrics(logging_outputs)
