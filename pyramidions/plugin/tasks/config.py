"""What the user may say about the data and its validation."""

import math
from dataclasses import dataclass
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass
from omegaconf import II, MISSING

from pyramidions.base.arguments import OneOf, Range, described
from pyramidions.models.config import MAX_SOURCE_POSITIONS, MAX_TARGET_POSITIONS

#: Tokens of a text: one, and the end.
LENGTH = Range(2)


def _patience() -> Any:
    return described(
        0,
        "end the run after this many validations at epoch ends without a better "
        "--best-checkpoint-metric, restarts or not; 0 never does",
        Range(0),
    )


def _frozen(parts: str) -> Any:
    return described(
        None,
        "parts that do not learn, with commas in between: embeddings (with an output layer tied to them), "
        f"{parts}, or layers counted from 0, e.g. embeddings,encoder.0-3. A run resumes with the parts that it "
        "began with",
    )


@dataclass
class DocumentTaskConfig(FairseqDataclass):
    """The options of every task that reads documents."""

    data: str = described(MISSING, "folder made by `pyramidions prepare`")
    max_source_positions: Optional[int] = described(
        None,
        "tokens of a document; longer documents are truncated. Default: "
        f"{MAX_SOURCE_POSITIONS}, or at generation what the checkpoint was trained with",
        LENGTH,
    )
    stopping_patience: int = _patience()
    freeze: Optional[str] = _frozen("encoder, poolers")
    pooling_warmup: int = described(
        0,
        "number of updates over which top-k pooling tightens from the whole document to "
        "--pooling-lengths, halving at equal intervals. The first updates need as much memory as no pooling. "
        "Validation always pools to --pooling-lengths",
        Range(0),
    )
    scorer_lr_scale: float = described(
        1.0,
        "learning rate of scorers, as a multiple of --lr; use more than 1 to train new scorers faster than "
        "pretrained weights",
        Range(0, math.inf, open=True, below=True),
    )
    check_data: bool = described(
        False, "read every byte of the data before it is used, and compare with the hashes in its manifest"
    )


@dataclass
class ScoredTaskConfig(DocumentTaskConfig):
    """The options of every task whose models make summaries, which validation scores."""

    eval_rouge: bool = described(False, "validate with summaries and log ROUGE, as --eval-metrics rouge does")
    eval_metrics: Optional[str] = described(
        None,
        "validate with summaries and log these metrics of `pyramidions score`, with commas in between; "
        "each figure can be --best-checkpoint-metric. Options are those of `pyramidions score`, with _ for -: "
        "\"rouge(language='de'),meteor\"",
    )


@dataclass
class LongDocumentSummarizationConfig(ScoredTaskConfig):
    """The options of `--task long_document_summarization`."""

    freeze: Optional[str] = _frozen("encoder, decoder, poolers, pointer")
    max_target_positions: Optional[int] = described(
        None, f"tokens of a summary; {MAX_TARGET_POSITIONS}, or what the checkpoint says", LENGTH
    )
    copying_updates: int = described(
        0,
        "number of updates at the beginning in which the model copies spans of each document instead of writing its "
        "summary. A model with a pointer and a recurrence learns to copy in a few hundred. Validation always writes "
        "summaries",
        Range(0),
    )
    source_prefix: Optional[str] = described(
        None, "text before each document, as 'summarize: ' for T5; none, or at generation what the checkpoint says"
    )
    eval_rouge_args: str = described(
        "",
        "generation arguments for --eval-rouge and --eval-metrics, e.g. 'beam=4, min_len=2'; "
        "the rest is the model's own decoding settings",
    )


@dataclass
class ExtractiveSummarizationConfig(ScoredTaskConfig):
    """The options of `--task extractive_summarization`."""

    extract_words: Optional[int] = described(
        None,
        "words of an extract. Default: mean of the training summaries, or at generation what the "
        "checkpoint was trained with",
        Range(1),
    )
    redundancy: Optional[str] = described(
        None,
        "how an extract avoids repetitions: none; trigrams passes over a sentence that shares one with "
        "what was selected; mmr selects by maximal marginal relevance. Default: none, or what the checkpoint says",
    )
    mmr_weight: Optional[float] = described(
        None, "of the score with --redundancy mmr, 0 to 1; 0.7, or what the checkpoint says"
    )


@dataclass
class SpanDenoisingConfig(DocumentTaskConfig):
    """The options of `--task span_denoising`."""

    freeze: Optional[str] = _frozen("encoder, decoder, poolers, pointer")
    max_target_positions: Optional[int] = described(
        None,
        f"tokens of all missing spans with their sentinels; {MAX_TARGET_POSITIONS}, or what the checkpoint "
        "says. A passage has as many tokens as fit both limits",
        LENGTH,
    )
    corrupted_share: float = described(
        0.15, "share of a passage's tokens that is missing", Range(0, 1, open=True, below=True)
    )
    mean_span: float = described(3.0, "mean number of tokens of a missing span", Range(1, math.inf, below=True))
    numbered_sentinels: bool = described(
        False, "give each span of a passage a sentinel of its own, as T5: the last pieces of the vocabulary"
    )
    copy_spans: bool = described(
        False,
        "leave spans in the passage, between two sentinels: the decoder learns to copy them. Small models "
        "that begin so come to read a document in minutes",
    )


@dataclass
class ToySequencesConfig(FairseqDataclass):
    """The options of `--task toy_sequences`; its lengths are in symbols."""

    problem: str = described(
        "copy", "what to learn: copy (digits), or addition (of two numbers)", OneOf(("copy", "addition"))
    )
    shortest: int = described(3, "shortest input of training and validation")
    longest: int = described(128, "longest input of training and validation")
    test_shortest: int = described(256, "shortest input of the split test")
    test_longest: int = described(300, "longest input of the split test")
    examples: int = described(12800, "examples of an epoch of training", Range(1))
    test_examples: int = described(1000, "examples of the splits valid and test, each", Range(1))
    max_source_positions: Optional[int] = described(
        None, f"tokens for which the model is built; {MAX_SOURCE_POSITIONS} if not given"
    )
    stopping_patience: int = _patience()


@dataclass
class CharacterLanguageModelingConfig(FairseqDataclass):
    """The options of `--task character_language_modeling`."""

    data: str = described(MISSING, "folder made by `pyramidions prepare --characters`")
    tokens_per_sample: int = described(
        2048, "characters of a window; in fairseq-eval-lm with --context-window, which is part of it"
    )
    piece_boundaries: bool = described(
        False, "show with each window where Unigram pieces end, for boundaries that are trained on them"
    )
    stopping_patience: int = _patience()
    check_data: bool = described(
        False, "read every byte of the data before it is used, and compare with the hashes in its manifest"
    )
    # fairseq's own language models ask the task for these two, which are no flags.
    max_target_positions: Optional[int] = II("task.tokens_per_sample")
    add_bos_token: bool = False

    def _get_all_attributes(self) -> list[str]:
        return [name for name in super()._get_all_attributes() if name != "add_bos_token"]
