"""The kinds of model that `pyramidions train` makes: a row of `KINDS` for each."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

from pyramidions.base.errors import UserError
from pyramidions.files.progress import counted
from pyramidions.runs.measure.extractor_recipe import extractor_recipe, extractor_vocab_size
from pyramidions.runs.measure.recipe import CPU_TFLOPS, GPU_TFLOPS, CorpusSize, recipe, tier_of
from pyramidions.runs.training.machine import Machine
from pyramidions.runs.training.progress import as_time

#: Documents below which a summarizer that starts from random weights does not learn to write.
FEW = 5_000
_LONG_EPOCH = 1_000  # updates; a checkpoint is saved within longer ones


class Schedule(NamedTuple):
    """How a model is trained.

    Attributes:
        flags: of fairseq-train, but for folders, machine and seed.
        updates: at most.
        hours: by the clock, estimated.
        about: the model, in words.
        batch: documents that are summarized at a time.
    """

    flags: tuple[str, ...]
    updates: int
    hours: float
    about: str
    batch: int

    @classmethod
    def read(cls, facts: dict[str, Any]) -> Self:
        """Return the schedule whose fields were written as JSON."""
        return cls(**{**facts, "flags": tuple(facts["flags"])})

    def __str__(self) -> str:
        time = f"about {as_time(self.hours)} if this machine is as fast as assumed; the first updates will tell"
        return f"{self.about}; at most {counted(self.updates, 'update')}, {time}"


class Kind(NamedTuple):
    """A kind of model.

    Attributes:
        name: the choice of --kind.
        task: fairseq's --task.
        labels: its data says which sentences a summary would take; documents are read by their sections.
        vocab_size: pieces that suit a number of documents, on a number of GPUs.
        schedule: how it is trained on a corpus, by a machine, in so many hours; None for as many as it takes.
        next_command: what one does with the model.
    """

    name: str
    task: str
    labels: bool
    vocab_size: Callable[[int, int], int]
    schedule: Callable[[CorpusSize, Machine, float | None], Schedule]
    next_command: Callable[[Path], str]


def _summarizer(corpus: CorpusSize, machine: Machine, most_hours: float | None) -> Schedule:
    tier, tflops = tier_of(corpus.documents, machine.gpus), GPU_TFLOPS if machine.gpus else CPU_TFLOPS
    worker_hours = None if most_hours is None else most_hours * machine.workers
    found = recipe(corpus, machine.workers, machine.memory, tier, worker_hours, tflops)
    hours = found.hours(tflops) / machine.workers
    hours = hours if most_hours is None else min(hours, most_hours)
    about = f"{found.tier.arch}, {found.cost.parameters / 1e6:.1f} million parameters"
    saves = ("--save-interval-updates", str(_LONG_EPOCH), "--keep-interval-updates", "1")
    flags = (*found.flags, *(saves if found.epoch_updates > _LONG_EPOCH else ()))
    return Schedule(flags, found.updates, hours, about, min(8, found.lengths.batch))


def _extractor(corpus: CorpusSize, machine: Machine, most_hours: float | None) -> Schedule:
    found = extractor_recipe(corpus, machine.gpus, most_hours)
    return Schedule(found.flags, found.updates, found.hours, "extractor", 8)


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            name="summarizer",
            task="long_document_summarization",
            labels=False,
            vocab_size=lambda documents, gpus: tier_of(documents, gpus).vocab_size,
            schedule=_summarizer,
            next_command=lambda model: f"pyramidions summarize {shlex.quote(str(model))} paper.pdf",
        ),
        Kind(
            name="extractor",
            task="extractive_summarization",
            labels=True,
            vocab_size=lambda documents, gpus: extractor_vocab_size(documents),
            schedule=_extractor,
            next_command=lambda model: f"pyramidions extract --method {shlex.quote(str(model))} paper.pdf",
        ),
    )
}


def choose_kind(asked: str, documents: int, machine: Machine, has_queries: bool = False) -> tuple[Kind, str]:
    """Return the kind of model for a number of documents to train on, and why.

    Raises:
        UserError: an extractor is asked for, but documents have queries.
    """
    if has_queries and asked == "extractor":
        raise UserError("--kind extractor excludes --query-field: extractors read no queries.")
    if asked != "auto":
        return KINDS[asked], "--kind asks for it"
    if has_queries:
        return KINDS["summarizer"], "extractors read no queries"
    if documents < FEW:
        return KINDS["extractor"], (
            f"fewer than {FEW:,} documents cannot teach a model to write; --kind summarizer trains one all the same"
        )
    if not machine.gpus:
        return KINDS["extractor"], (
            "without a GPU a model that learns to write takes days; --kind summarizer trains a small one"
        )
    return KINDS["summarizer"], f"{documents:,} documents can teach a model to write"
