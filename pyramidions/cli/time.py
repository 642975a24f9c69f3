"""`pyramidions time`."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.errors import UserError

if TYPE_CHECKING:
    from pyramidions.measure.timing import Plan, Timed
    from pyramidions.models.experiment import Experiment


#: What a CPU does in minutes; a GPU gets the sizes of the paper's table 10.
_ON_CPU: dict[str, Any] = {"train_batch": 2, "decode_batch": 2, "decode_tokens": (32,)}


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    if value == "none":
        return ()
    try:
        return tuple(int(number) for number in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither none nor a list of numbers like 256,512.") from None


@click.command("time", short_help="Time a training step and decoding.")
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG... [OVERRIDES]")
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]), help="What computes.")
@click.option(
    "--precision",
    default="fp32",
    show_default=True,
    type=click.Choice(["fp32", "bf16"]),
    help="bf16 is autocast: parameters stay fp32.",
)
@click.option("--train-batch", type=click.IntRange(1), help="Documents of a training step.  [default: 64; on a CPU 2]")
@click.option(
    "--micro-batch",
    type=click.IntRange(1),
    help="Documents of it in memory at a time; gradients are added up.  [default: all]",
)
@click.option("--source-tokens", type=click.IntRange(2), help="Tokens of a document.  [default: the config's most]")
@click.option(
    "--target-tokens",
    type=click.IntRange(1),
    help="Length of the summaries in the training step.  [default: the config's longest]",
)
@click.option("--decode-batch", type=click.IntRange(1), help="Documents decoded together.  [default: 8; on a CPU 2]")
@click.option(
    "--decode-tokens",
    callback=_numbers,
    metavar="N,...",
    help="How many tokens are written, in one timing each; none times training alone.  [default: 256,512; on a CPU 32]",
)
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(2), help="Timings of each kind.")
@click.option("--warmup", default=2, show_default=True, type=click.IntRange(0), help="Turns before them, not counted.")
@click.option("--vocab-size", default=32768, show_default=True, type=click.IntRange(5), help="Tokens the models know.")
@click.option("--seed", default=1, show_default=True, help="Of weights, documents and dropout.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write all numbers to this file.")
def time_command(configs: tuple[str, ...], source_tokens: int | None, out: Path | None, **settings: Any) -> None:
    """Time a training step and the decoding of an exact number of tokens, on synthetic documents of full length.

    CONFIG is a preset or a .yaml file of configs/; what holds a = is an override for all of them, in Hydra's words. A
    preset is made for documents of --source-tokens; of a file they are at most its task.max_source_positions.
    Several configs take turns, and each is compared with the first. A training step is forward, backward, clipping
    and Adam, dropout included; decoding is the encoder and a beam search as wide as the config's decoding_beam.

    On a CPU the batches are small unless you say otherwise, and small turns tell beforehand how long all will take.

    \b
    Example:
      pyramidions time deep_blockwise deep_pyramidion --source-tokens 2048
      pyramidions time pyramidion model.pooling=mean --device cuda --micro-batch 8 --json times.json
    """
    from pyramidions.cli.naming import naming_options
    from pyramidions.cli.outputs import check_output
    from pyramidions.data.atomic import atomic_file
    from pyramidions.measure.timing import Plan, report, time_models
    from pyramidions.models.experiment import read_experiment, with_lengths

    overrides = tuple(word for word in configs if "=" in word)
    names = [word for word in configs if word not in overrides]
    if not names:
        raise UserError(f"At least one config must be named, but only overrides are: {' '.join(overrides)}.")
    check_output("--json", out, "an older file of times", map(Path, names))
    on_cpu = settings["device"] == "cpu"
    chosen = {name: value for name, value in settings.items() if value is not None}
    with naming_options(*settings):
        plan = Plan(**{**(_ON_CPU if on_cpu else {}), **chosen})
    target_tokens = settings["target_tokens"]
    experiments = [with_lengths(read_experiment(name, overrides), source_tokens, target_tokens) for name in names]
    if on_cpu:
        _say_what(experiments, plan)
    results = time_models(experiments, plan, _bar, _say_how_long if on_cpu else None)
    result = report(experiments, plan, results, overrides)
    click.echo(_table([experiment.name for experiment in experiments], results))
    click.echo(f"\n{_signature(plan, result)}")
    if out is not None:
        with atomic_file(out) as file:
            file.write((json.dumps(result, indent=1) + "\n").encode())


def _say_what(experiments: "list[Experiment]", plan: "Plan") -> None:
    from pyramidions.data.progress import counted, note

    lengths = sorted({experiment.max_source_positions for experiment in experiments})
    tokens = counted(lengths[0], "token") if len(lengths) == 1 else f"{lengths[0]:,} to {lengths[-1]:,} tokens"
    parts = [f"a training step of {counted(plan.train_batch, 'document')}"]
    if plan.decode_tokens:
        written = " and ".join(map(str, plan.decode_tokens))
        parts.append(f"{written} tokens written for {counted(plan.decode_batch, 'document')}")
    turns = f"{plan.warmup + plan.repeats} turns of {counted(len(experiments), 'model')}"
    note(f"On the CPU: {', '.join(parts)}, of {tokens} each; {turns}.")


def _say_how_long(seconds: float) -> None:
    from pyramidions.data.progress import note

    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            note(f"That takes about {seconds / length:.2g} {unit}.")
            return
    note(f"That takes about {seconds:.0f} s.")


@contextmanager
def _bar(phase: str, calls: int) -> Iterator[Callable[[], object]]:
    from pyramidions.data.progress import progress_bar

    with progress_bar(phase, calls, "step") as shown:
        yield shown.update


def _table(names: list[str], results: "list[dict[str, Timed]]") -> str:
    phases = list(results[0])
    width = max(len(name) for name in [*names, "config"])

    def row(name: str, cells: list[str]) -> str:
        return "  ".join([f"{name:{width}}", *(f"{cell:>22}" for cell in cells)])

    def seconds(timed: "Timed") -> str:
        return f"{timed.mean:.4g} ± {timed.deviation:.2g}"

    def ratio(timed: "Timed", first: "Timed") -> str:
        between = timed.ratio_to(first)
        return f"{between['medians']:.3f} [{between['low']:.3f}, {between['high']:.3f}]"

    lines = [row("config", [f"{phase}, s" for phase in phases])]
    lines += [row(name, [seconds(result[p]) for p in phases]) for name, result in zip(names, results, strict=True)]
    if any(timed.peak_bytes is not None for timed in results[0].values()):
        lines.append("\nPeak memory, GiB:")
        for name, result in zip(names, results, strict=True):
            lines.append(row(name, [f"{(result[p].peak_bytes or 0) / 2**30:.2f}" for p in phases]))
    if len(names) > 1:
        lines.append(f"\nRatio of medians to {names[0]} [lowest, highest of two neighbouring turns]:")
        for name, result in zip(names[1:], results[1:], strict=True):
            lines.append(row(name, [ratio(result[p], results[0][p]) for p in phases]))
    return "\n".join(lines)


def _signature(plan: "Plan", result: dict[str, Any]) -> str:
    parts = [
        f"mean ± standard deviation of {plan.repeats} turns after {plan.warmup} for warm-up",
        f"training batch {plan.train_batch} in {plan.pieces} pieces" if plan.pieces > 1 else None,
        plan.precision,
        f"{result['hardware']['device']}, threads {result['hardware']['threads']}",
        f"torch {result['versions']['torch']}",
        f"commit {result['commit']}",
        f"seed {plan.seed}",
    ]
    return " | ".join(part for part in parts if part)
