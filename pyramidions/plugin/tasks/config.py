"""What the user may say about the data and its validation."""

from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II, MISSING

from pyramidions.models.config import MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS


def _patience() -> Any:
    return field(
        default=0,
        metadata={
            "help": "end the run after this many validations at epoch ends without a better "
            "--best-checkpoint-metric, restarts or not; 0 never does"
        },
    )


def _frozen(parts: str) -> Any:
    return field(
        default=None,
        metadata={
            "help": "parts that do not learn, with commas in between: embeddings (with an output layer tied to them), "
            f"{parts}, or layers counted from 0, e.g. embeddings,encoder.0-3. A run resumes with the parts that it "
            "began with"
        },
    )


@dataclass
class DocumentTaskConfig(FairseqDataclass):
    """The options of every task that reads documents."""

    data: str = field(default=MISSING, metadata={"help": "folder made by `pyramidions prepare`"})
    max_source_positions: Optional[int] = field(
        default=None,
        metadata={
            "help": "tokens of a document; longer documents are truncated. Default: "
            f"{MAX_SOURCE_POSITIONS}, or at generation what the checkpoint was trained with"
        },
    )
    stopping_patience: int = _patience()
    freeze: Optional[str] = _frozen("encoder, poolers")
    pooling_warmup: int = field(
        default=0,
        metadata={
            "help": "number of updates over which top-k pooling tightens from the whole document to "
            "--pooling-lengths, halving at equal intervals. The first updates need as much memory as no pooling. "
            "Validation always pools to --pooling-lengths"
        },
    )
    scorer_lr_scale: float = field(
        default=1.0,
        metadata={
            "help": "learning rate of scorers, as a multiple of --lr; use more than 1 to train new scorers faster than "
            "pretrained weights"
        },
    )
    check_data: bool = field(
        default=False,
        metadata={"help": "read every byte of the data before it is used, and compare with the hashes in its manifest"},
    )


@dataclass
class ScoredTaskConfig(DocumentTaskConfig):
    """The options of every task whose models make summaries, which validation scores."""

    eval_rouge: bool = field(
        default=False,
        metadata={"help": "validate with summaries and log ROUGE, as --eval-metrics rouge does"},
    )
    eval_metrics: Optional[str] = field(
        default=None,
        metadata={
            "help": "validate with summaries and log these metrics of `pyramidions score`, with commas in between; "
            "each figure can be --best-checkpoint-metric"
        },
    )
    eval_metric_args: str = field(
        default="{}",
        metadata={
            "help": 'options of --eval-metrics as a JSON object, e.g. \'{"language": "de"}\'; they are those of '
            "`pyramidions score`, with _ for -"
        },
    )


@dataclass
class LongDocumentSummarizationConfig(ScoredTaskConfig):
    """The options of `--task long_document_summarization`."""

    freeze: Optional[str] = _frozen("encoder, decoder, poolers")
    max_target_positions: Optional[int] = field(
        default=None,
        metadata={"help": f"tokens of a summary; {MAX_TARGET_POSITIONS}, or what the checkpoint says"},
    )
    eval_rouge_args: str = field(
        default="{}",
        metadata={
            "help": "generation arguments for --eval-rouge and --eval-metrics as a JSON object, e.g. '{\"beam\": 4}'; "
            "the rest is the model's own decoding settings"
        },
    )


@dataclass
class ExtractiveSummarizationConfig(ScoredTaskConfig):
    """The options of `--task extractive_summarization`."""

    extract_words: Optional[int] = field(
        default=None,
        metadata={
            "help": "words of an extract. Default: mean of the training summaries, or at generation what the "
            "checkpoint was trained with"
        },
    )
    redundancy: Optional[str] = field(
        default=None,
        metadata={
            "help": "how an extract avoids repetitions: none; trigrams passes over a sentence that shares one with "
            "what was selected; mmr selects by maximal marginal relevance. Default: none, or what the checkpoint says"
        },
    )
    mmr_weight: Optional[float] = field(
        default=None,
        metadata={"help": "of the score with --redundancy mmr, 0 to 1; 0.7, or what the checkpoint says"},
    )


@dataclass
class SpanDenoisingConfig(DocumentTaskConfig):
    """The options of `--task span_denoising`."""

    freeze: Optional[str] = _frozen("encoder, decoder, poolers")
    max_target_positions: Optional[int] = field(
        default=None,
        metadata={
            "help": f"tokens of all missing spans with their sentinels; {MAX_TARGET_POSITIONS}, or what the checkpoint "
            "says. A passage has as many tokens as fit both limits"
        },
    )
    corrupted_share: float = field(default=0.15, metadata={"help": "share of a passage's tokens that is missing"})
    mean_span: float = field(default=3.0, metadata={"help": "mean number of tokens of a missing span"})
    copy_spans: bool = field(
        default=False,
        metadata={
            "help": "leave spans in the passage, between two sentinels: the decoder learns to copy them. Small models "
            "that begin so come to read a document in minutes"
        },
    )


@dataclass
class ToySequencesConfig(FairseqDataclass):
    """The options of `--task toy_sequences`; its lengths are in symbols."""

    problem: str = field(
        default="copy", metadata={"help": "what to learn: copy (digits), or addition (of two numbers)"}
    )
    shortest: int = field(default=3, metadata={"help": "shortest input of training and validation"})
    longest: int = field(default=128, metadata={"help": "longest input of training and validation"})
    test_shortest: int = field(default=256, metadata={"help": "shortest input of the split test"})
    test_longest: int = field(default=300, metadata={"help": "longest input of the split test"})
    examples: int = field(default=12800, metadata={"help": "examples of an epoch of training"})
    test_examples: int = field(default=1000, metadata={"help": "examples of the splits valid and test, each"})
    max_source_positions: Optional[int] = field(
        default=None, metadata={"help": f"tokens for which the model is built; {MAX_SOURCE_POSITIONS} if not given"}
    )
    stopping_patience: int = _patience()


@dataclass
class CharacterLanguageModelingConfig(FairseqDataclass):
    """The options of `--task character_language_modeling`."""

    data: str = field(default=MISSING, metadata={"help": "folder made by `pyramidions prepare --characters`"})
    tokens_per_sample: int = field(
        default=2048,
        metadata={"help": "characters of a window; in fairseq-eval-lm with --context-window, which is part of it"},
    )
    piece_boundaries: bool = field(
        default=False,
        metadata={"help": "show with each window where Unigram pieces end, for boundaries that are trained on them"},
    )
    stopping_patience: int = _patience()
    check_data: bool = field(
        default=False,
        metadata={"help": "read every byte of the data before it is used, and compare with the hashes in its manifest"},
    )
    # fairseq's own language models ask the task for these two, which are no flags.
    max_target_positions: Optional[int] = II("task.tokens_per_sample")
    add_bos_token: bool = False

    def _get_all_attributes(self) -> list[str]:
        return [name for name in super()._get_all_attributes() if name != "add_bos_token"]
