"""`pyramidions recipe`."""

import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.outputs import PATH

if TYPE_CHECKING:
    from pyramidions.runs.recipe import CorpusSize, Recipe

_SMALL_VOCABULARY = 8000
_WIDTH = 100


@click.command(short_help="Print a training command that fits a corpus.")
@click.argument("prepared", type=PATH)
@click.option(
    "--gpus", type=click.IntRange(0, 4096), help="GPUs that train; 0 for the CPU.  [default: all that torch finds]"
)
@click.option("--gpu-memory", type=click.FloatRange(1, 1e6), default=40, help="Memory of each, or of the CPU, in GB.")
@click.option(
    "--tflops",
    type=click.FloatRange(1e-6, 1e6),
    help="10^12 operations per second that each sustains.  [default: 10, about half of an A100 in float32; CPU: 0.03]",
)
@click.option("--save-dir", default="checkpoints", help="Folder of checkpoints.")
def recipe(prepared: Path, gpus: int | None, gpu_memory: float, tflops: float | None, save_dir: str) -> None:
    """Print a fairseq-train command for the folder PREPARED, with an estimate of its memory and hours.

    Hundreds of documents train a small model, thousands the shallow one of the paper, hundreds of thousands the deep
    one. Updates, warm-up and lengths follow from the number of documents and their lengths. Memory and hours are
    estimates, not measurements: 16 bytes per parameter and the activations of the longest batch in float32, and three
    forward passes per step, without validation. All lines but the command are comments, so the output can be
    kept as a script.

    \b
    Example:
      pyramidions recipe prepared --gpus 1 > train.sh
    """
    from pyramidions.runs.recipe import CPU_TFLOPS, GPU_TFLOPS
    from pyramidions.runs.recipe import recipe as recipe_for

    for option, value in (("--gpu-memory", gpu_memory), ("--tflops", tflops)):
        # Ranges let it pass.
        if value is not None and math.isnan(value):
            raise UserError(f"{option} must be a number, but is {value}.")
    if gpus is None:
        import torch

        gpus = torch.cuda.device_count()
    corpus = _corpus(prepared)
    found = recipe_for(corpus, max(gpus, 1), gpu_memory * 1e9)
    rate = tflops or (GPU_TFLOPS if gpus else CPU_TFLOPS)
    comments = [*map(_comment, _before(corpus, found))], [*map(_comment, _after(found, gpus, gpu_memory, rate))]
    click.echo("\n".join([*comments[0], _command(prepared, found, gpus, save_dir), *comments[1]]))


def _corpus(prepared: Path) -> "CorpusSize":
    from pyramidions.data.folder import DataFolder
    from pyramidions.runs.recipe import CorpusSize

    folder = DataFolder(prepared)
    manifest = folder.manifest
    for split in ("train", "valid"):
        if split not in manifest["splits"]:
            raise UserError(f"{prepared} must hold the splits train and valid, but lacks {split}.")
    train = manifest["splits"]["train"]
    source, target = train["source_tokens"], train["target_tokens"]
    if not ("p95" in source and ("p5" in target or "min" in target)):
        raise UserError(f"{prepared} must have the manifest of `pyramidions prepare`, but its lengths are incomplete.")
    return CorpusSize(train["documents"], manifest["vocab_size"], source, target, folder.has_queries)


def _command(prepared: Path, found: "Recipe", gpus: int, save_dir: str) -> str:
    from pyramidions.files.processes import USER_DIR, as_typed

    words = ["fairseq-train", str(prepared), "--user-dir", USER_DIR, "--task", "long_document_summarization"]
    words += [*found.flags, "--save-dir", save_dir]
    words += ["--distributed-world-size", str(gpus)] if gpus else ["--cpu"]
    return as_typed(words)


def _before(corpus: "CorpusSize", found: "Recipe") -> list[str]:
    from pyramidions.runs.recipe import TIERS

    source, target, read = corpus.source, corpus.target, found.lengths
    notes = [
        f"{corpus.documents:,} documents of {source['mean']:,.0f} tokens on average, 95% of them of at most "
        f"{source['p95']:,.0f}; {read.source:,} are read. Summaries have {target['mean']:,.0f} tokens on "
        f"average, at most {target['max']:,}; {read.target:,} are kept.",
        f"The recipe for {found.tier.name} of documents: {found.tier.arch}, {found.cost.parameters / 1e6:.1f} million "
        "parameters.",
    ]
    if found.tier is not TIERS[0]:
        return [*notes, "It follows the paper, and has not been run at this size yet."]
    notes.append(
        "So few documents teach what a summary looks like, and little about the document at hand. If you have a "
        "trained model, fine-tune that one instead."
    )
    if corpus.vocab_size > _SMALL_VOCABULARY:
        notes.append(
            f"{corpus.vocab_size:,} pieces are many for so few documents: prepare them again with --vocab-size 4000."
        )
    return notes


def _after(found: "Recipe", gpus: int, gpu_memory: float, rate: float) -> list[str]:
    from pyramidions.files.progress import counted

    each = "GPU" if gpus else "CPU"
    hours = found.hours(rate)
    weights, kept, total = (_rounded(size / 1e9) for size in (*found.memory, sum(found.memory)))
    notes = [
        f"{counted(found.epoch_updates, 'update')} an epoch, {found.updates:,} in at most {found.tier.epochs} epochs; "
        f"warm-up {found.warmup:,}.",
        f"Memory, estimated: {total} GB on each {each}, {weights} for weights, gradients and Adam, {kept} for "
        f"activations of {found.lengths.batch} of the longest documents.",
        f"Time, estimated: {_rounded(hours)} {each} hours, {_rounded(hours / max(gpus, 1))} by the clock, if each "
        f"sustains {rate:g} x 10^12 operations a second (assumed; --tflops). Validation comes on top.",
    ]
    if sum(found.memory) > gpu_memory * 1e9:
        notes.append(f"This is more than --gpu-memory {gpu_memory:g}: see --checkpoint-activations.")
    return notes


def _rounded(value: float) -> str:
    """Two digits: the estimate is no more exact."""
    return f"{float(f'{value:.2g}'):,g}" if value >= 0.01 else "0.01"


def _comment(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="# ", subsequent_indent="# ")
