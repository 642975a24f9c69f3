"""The kinds of model that `pyramidions train` makes, and the machine that they are trained on."""

import math
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.extract.methods import known_methods
from pyramidions.files.progress import counted
from pyramidions.runs.recipe import (
    CorpusSize,
    Schedule,
    Selecting,
    rounded_up,
    saves_every,
    summarizer_schedule,
    tier_of,
)

#: Documents below which a summarizer that starts from random weights does not learn to write.
FEW = 5_000
#: Tokens a second that an extractor is assumed to train on: one core of a server, and an A100.
CPU_TOKENS, GPU_TOKENS = 60_000, 1_500_000
#: The kind that predicts which n-grams a summary holds.
CONCEPTS = "concepts"
_LONGEST, _BATCH = 8192, 16_384  # tokens that an extractor reads of a document, and of a batch
# Documents that its training reads, at least one epoch: half an hour on a core, minutes on a GPU. 200 papers teach no
# more after ten epochs.
_READ = {False: 15_000, True: 120_000}
_MOST_EPOCHS = 10
_GPU_BYTES = "import torch; print(min(torch.cuda.get_device_properties(i).total_memory for i in range({})))"


class Machine(NamedTuple):
    """What a run computes on."""

    gpus: int  # number of GPUs; 0 for the CPU
    memory: float  # bytes of each GPU, or of the CPU, that a training may take

    @property
    def workers(self) -> int:
        return max(self.gpus, 1)

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--distributed-world-size", str(self.gpus)) if self.gpus else ("--cpu",)

    def __str__(self) -> str:
        return counted(self.gpus, "GPU") if self.gpus else "the CPU"


def find_machine(gpus: int | None) -> Machine:
    """Return this machine."""
    if gpus is None and find_spec("torch") is None:
        gpus = 0
    if gpus != 0:
        import torch

        found = torch.cuda.device_count()
        if gpus is not None and gpus > found:
            raise UserError(f"--gpus must be at most {found}, the number of GPUs that torch finds, but is {gpus}.")
        gpus = gpus or found
    if gpus == 0:
        return Machine(0, 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    # Asked by another process: this one would hold some of the memory as long as it runs.
    done = subprocess.run([sys.executable, "-c", _GPU_BYTES.format(gpus)], capture_output=True, text=True, check=True)
    return Machine(gpus, 0.8 * float(done.stdout))


def _extractor(corpus: CorpusSize, machine: Machine, most_hours: float | None) -> Schedule:
    """Return how an extractor is trained; its learning rate falls to 0 by the end, so updates are decided here."""
    longest = min(_LONGEST, rounded_up(corpus.source["p95"], 512))
    tokens = corpus.documents * min(longest, corpus.source["mean"])
    # Batches are not filled to the last token.
    epoch_updates = math.ceil(1.1 * tokens / (_BATCH * machine.workers))
    updates = round(min(_MOST_EPOCHS, max(1.0, _READ[machine.gpus > 0] / corpus.documents)) * epoch_updates)
    seconds = _BATCH / (GPU_TOKENS if machine.gpus else CPU_TOKENS)  # of an update
    if most_hours is not None:
        # The rest is for validation, and for a slower machine.
        updates = max(1, min(updates, int(0.7 * most_hours * 3600 / seconds)))
    # A stopped run loses a tenth at most.
    saves = saves_every(updates // 10)
    flags = (
        *("--arch", "extractor", "--max-source-positions", str(longest)),
        *("--criterion", "extractive_summarization", "--optimizer", "adam", "--clip-norm", "1.0"),
        *("--lr", "1e-3", "--lr-scheduler", "linear_decay", "--warmup-updates", str(min(200, updates // 10))),
        *("--max-update", str(updates), "--max-tokens", str(_BATCH)),
        *("--eval-rouge", "--best-checkpoint-metric", "rouge1", "--maximize-best-checkpoint-metric"),
        *(saves if epoch_updates > updates // 5 else ()),
        "--no-epoch-checkpoints",
    )
    return Schedule(flags, updates, updates * seconds / 3600, "extractor", 8)


def _concepts(corpus: CorpusSize, machine: Machine, most_hours: float | None) -> Schedule:
    # A core reads 20 papers a second or more; fitting takes a minute whatever the corpus.
    return Schedule((), 0, 0.02 + corpus.documents / 20 / 3600, "trees on concepts", 1)


def _extract_command(model: Path) -> str:
    # A name that is known goes before a path.
    path = f"./{model}" if str(model) in known_methods() else str(model)
    return f"pyramidions extract --method {shlex.quote(path)} paper.pdf"


class Kind(NamedTuple):
    """A kind of model."""

    task: str  # fairseq's --task; "" for a kind that it does not train
    labels: bool  # its data says which sentences a summary would take
    vocab_size: Callable[[int, int], int]  # pieces that suit a number of documents, on a number of GPUs
    # How it reads selected sentences of documents, by their number and that of GPUs; None if it reads whole documents.
    selecting: Callable[[int, int], Selecting | None]
    # How it is trained on a corpus, by a machine, in so many hours; None for no limit.
    schedule: Callable[[CorpusSize, Machine, float | None], Schedule]
    next_command: Callable[[Path], str]  # what one does with the model


#: by the choice of --kind
KINDS = {
    "summarizer": Kind(
        task="long_document_summarization",
        labels=False,
        vocab_size=lambda documents, gpus: tier_of(documents, gpus).vocab_size,
        selecting=lambda documents, gpus: tier_of(documents, gpus).selecting,
        schedule=lambda corpus, machine, hours: summarizer_schedule(corpus, machine.gpus, machine.memory, hours),
        next_command=lambda model: f"pyramidions summarize {shlex.quote(str(model))} paper.pdf",
    ),
    "extractor": Kind(
        task="extractive_summarization",
        labels=True,
        vocab_size=lambda documents, gpus: 4000 if documents <= 2_000 else 16_000,
        selecting=lambda documents, gpus: None,
        schedule=_extractor,
        next_command=_extract_command,
    ),
    CONCEPTS: Kind(
        task="",
        labels=True,
        vocab_size=lambda documents, gpus: 0,
        selecting=lambda documents, gpus: None,
        schedule=_concepts,
        next_command=_extract_command,
    ),
}


def choose_kind(asked: str, documents: int, machine: Machine, has_queries: bool = False) -> tuple[str, str]:
    """Return the kind of model for a number of documents to train on, and why."""
    if has_queries and asked in ("extractor", CONCEPTS):
        raise UserError(f"--kind {asked} excludes --query-field: this kind is trained without queries.")
    if asked != "auto":
        return asked, "--kind asks for it"
    if has_queries:
        return "summarizer", "--query-field asks for it"
    if documents < FEW:
        return CONCEPTS, (
            f"fewer than {FEW:,} documents cannot teach a model to write; --kind summarizer trains one all the same"
        )
    if not machine.gpus:
        return (CONCEPTS, "without a GPU a model that learns to write takes days; --kind summarizer trains a small one")
    return "summarizer", f"{documents:,} documents can teach a model to write"
