"""Training settings for a corpus of a given size, with an estimate of the memory and time that they need."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from pyramidions.base.arguments import flag_of
from pyramidions.files.progress import counted
from pyramidions.runs.progress import as_time

#: Operations a second, in 10^12, that are assumed: half of an A100 in float32, and two cores.
GPU_TFLOPS, CPU_TFLOPS = 10.0, 0.03
_LONG_EPOCH = 1_000  # updates; a checkpoint is saved within longer ones
_WEIGHT_BYTES = 16  # a parameter in float32, its gradient and Adam's two moments


class Selecting(NamedTuple):
    """How a model reads sentences that are selected from a document in place of its beginning."""

    budget: int  # tokens of these sentences at most
    fields: dict[str, Any]  # of the model, beside those of its tier; nothing is pooled
    copying: int  # updates in which it learns to copy, at most; of a short training, a quarter


class CorpusSize(NamedTuple):
    """What is known of a prepared corpus."""

    documents: int  # for training
    vocab_size: int  # pieces, specials included
    source: Mapping[str, float]  # "mean" and "p95" of a document's tokens
    target: Mapping[str, float]  # "mean", "p5" and "max" of a summary's tokens
    has_queries: bool = False  # documents have queries; a scorer that reads them decides then what is kept
    selecting: Selecting | None = None  # how sentences were selected from them; None for whole documents


class Tier(NamedTuple):
    """What suits corpora up to a size."""

    most: int | None  # documents up to which it is taken; None for any number
    vocab_size: int  # pieces that suit so many documents
    arch: str  # the preset
    fields: dict[str, Any]  # what differs from it
    # After each layer, by how much the longest document is condensed; None where a layer keeps all.
    pooled: tuple[int | None, ...]
    longest: int  # most tokens of a document that are read
    selecting: Selecting | None  # how `pyramidions train` shortens documents first; None if it does not
    update: int  # documents an update
    epochs: int  # most epochs
    warmup: tuple[int, int]  # updates of the warm-up at most, and epochs at most
    flags: tuple[str, ...]  # of the training, beside


_ROUGE = ("--eval-rouge", "--eval-rouge-args", "beam=2")
_BEST_ROUGE = ("--best-checkpoint-metric", "rouge2", "--maximize-best-checkpoint-metric")
_BETAS = ("--adam-betas", "(0.9, 0.98)")
TIERS = (
    # Hundreds of documents.
    Tier(
        most=2_000,
        vocab_size=4000,
        # With a pointer and a recurrence a model learns to copy in a few hundred updates.
        arch="pyramidion_pointer",
        fields={
            "embed_dim": 192,
            "ffn_embed_dim": 768,
            "num_heads": 4,
            "normalize_before": True,
            "recurrence": "sru",
            "attention_dropout": 0.0,
            "self_attention": "blockwise(block_size=256)",
        },
        pooled=(4, 16),
        longest=2048,
        selecting=Selecting(640, {"self_attention": "full", "decoding_long": "extract"}, copying=400),
        update=8,
        epochs=20,
        warmup=(500, 2),
        flags=(
            *("--lr", "1e-3", "--lr-scheduler", "linear_decay", *_BETAS),
            *("--validate-interval", "1", "--stopping-patience", "3"),
        ),
    ),
    # Thousands: the best shallow model of table 2, row 8.
    Tier(
        most=50_000,
        vocab_size=16_000,
        arch="transpooler",
        fields={"normalize_before": True},
        pooled=(None, 4),
        longest=8192,
        selecting=None,
        update=32,
        epochs=30,
        warmup=(2_000, 3),
        flags=(
            *("--lr", "5e-4", "--lr-scheduler", "inverse_sqrt", *_BETAS, *_ROUGE, *_BEST_ROUGE),
            *("--validate-interval", "3", "--stopping-patience", "5"),
        ),
    ),
    # Hundreds of thousands: the paper's run (tables 3 and 6, appendix D.1).
    Tier(
        most=None,
        vocab_size=32_768,
        arch="deep_pyramidion",
        fields={},
        pooled=(None, 4, 16, None, None, None),
        longest=8192,
        selecting=None,
        update=256,
        epochs=30,
        warmup=(5_000, 10),
        flags=(
            *("--lr", "5e-4", "--lr-scheduler", "fixed", "--weight-decay", "0.1", *_ROUGE, *_BEST_ROUGE),
            *("--validate-interval", "3", "--stopping-patience", "7"),
        ),
    ),
)


class Schedule(NamedTuple):
    """How a model is trained."""

    flags: tuple[str, ...]  # of fairseq-train, but for folders, machine and seed
    updates: int  # at most
    hours: float  # by the clock, estimated
    about: str  # the model, in words
    batch: int  # documents that are summarized at a time

    @classmethod
    def read(cls, facts: dict[str, Any]) -> Self:
        """Return the schedule whose fields were written as JSON."""
        return cls(**{**facts, "flags": tuple(facts["flags"])})

    def __str__(self) -> str:
        time = f"about {as_time(self.hours)} if this machine is as fast as assumed; the first updates will tell"
        return f"{self.about}; at most {counted(self.updates, 'update')}, {time}"


def tier_of(documents: int, gpus: int) -> Tier:
    """Return what suits a corpus and a machine: without a GPU the smallest model, whatever the corpus."""
    return next(tier for tier in TIERS if not gpus or tier.most is None or documents <= tier.most)


def summarizer_schedule(corpus: CorpusSize, gpus: int, memory: float, most_hours: float | None) -> Schedule:
    """Return how a summarizer is trained. The batch is as large as memory allows, and at least one document.

    The warm-up takes a tenth of the most hours at most, and the learning rate falls from then on where the tier lets it
    fall.
    """
    from pyramidions.models import preset
    from pyramidions.runs.measure.cost import Lengths, cost_of

    tier, workers, tflops = tier_of(corpus.documents, gpus), max(gpus, 1), GPU_TFLOPS if gpus else CPU_TFLOPS
    source = min(tier.longest, rounded_up(corpus.source["p95"], 512))
    if corpus.selecting is not None:
        source = corpus.selecting.budget
    target = min(1024, rounded_up(corpus.target["max"] + 1, 64))
    fields = _fields(tier, source, corpus)
    config = preset(tier.arch, **fields)
    # Most work is done in blocks, so it grows with a document's length: the mean decides.
    mean = min(source, round(corpus.source["mean"])), min(target, round(corpus.target["mean"]))
    # A multiplication comes with an addition; a step with its backward pass counts three times.
    operations = (
        3 * 2 * cost_of(config, Lengths(*mean, 1, corpus.vocab_size)).total() * float(corpus.documents) * tier.epochs
    )
    hours = operations / (tflops * 1e12) / 3600 / workers
    batch = max(1, tier.update // workers)
    while True:
        cost = cost_of(config, Lengths(source, target, batch, corpus.vocab_size))
        if batch == 1 or _WEIGHT_BYTES * cost.parameters + sum(cost.activations.values()) <= memory:
            break
        batch //= 2
    frequency = max(1, round(tier.update / (batch * workers)))
    epoch_updates = math.ceil(math.ceil(math.ceil(corpus.documents / batch) / workers) / frequency)
    updates = tier.epochs * epoch_updates
    warmup = min(tier.warmup[0], tier.warmup[1] * epoch_updates)
    expected = updates
    if most_hours is not None and most_hours < hours:
        expected = int(most_hours / hours * updates)
        warmup = min(warmup, max(1, int(0.1 * most_hours / hours * updates)))
        hours = most_hours
    copying = 0 if corpus.selecting is None else min(corpus.selecting.copying, expected // 4)
    flags = (
        *("--arch", tier.arch, *model_flags(fields)),
        *("--max-source-positions", str(source), "--max-target-positions", str(target)),
        *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--clip-norm", "1.0", *tier.flags),
        *(("--copying-updates", str(copying)) if copying else ()),
        *("--warmup-updates", str(warmup), "--max-update", str(updates)),
        *("--batch-size", str(batch)),
        *("--update-freq", str(frequency), "--no-epoch-checkpoints"),
        *(saves_every(_LONG_EPOCH) if epoch_updates > _LONG_EPOCH else ()),
    )
    about = f"{tier.arch}, {cost.parameters / 1e6:.1f} million parameters"
    return Schedule(flags, updates, hours, about, min(8, batch))


def saves_every(updates: int) -> tuple[str, ...]:
    """Return the flags that save in mid-epoch, and keep the last of these checkpoints."""
    return "--save-interval-updates", str(updates), "--keep-interval-updates", "1"


def rounded_up(tokens: float, multiple: int) -> int:
    """Return a length as a multiple that is not smaller."""
    return math.ceil(tokens / multiple) * multiple


def _fields(tier: Tier, source: int, corpus: CorpusSize) -> dict[str, Any]:
    from pyramidions.models import PyramidionConfig

    by_layer = tier.pooled if corpus.selecting is None else (None,) * len(tier.pooled)
    pooled = ",".join(str(by and source // by) for by in by_layer)
    # A model that saw few documents repeats itself, and ends too early: 95 of 100 summaries are at least this long.
    least = min(max(1, int(corpus.target["p5"])), PyramidionConfig.decoding_max_length)
    fields = {**tier.fields, "pooling_lengths": pooled, "decoding_no_repeat_ngram": 3, "decoding_min_length": least}
    if corpus.selecting is not None:
        fields |= corpus.selecting.fields
    if corpus.has_queries:
        fields |= {"pooling": "soft_topk", "scorer": "query"}
    return fields


def model_flags(fields: dict[str, Any]) -> list[str]:
    """Return the flags of fairseq-train for fields of a model; switches that are off have none."""
    given = {flag_of(name): value for name, value in fields.items() if value is not False}
    flags = {flag: [] if value is True else [str(value)] for flag, value in given.items()}
    return [word for flag, values in flags.items() for word in (flag, *values)]
