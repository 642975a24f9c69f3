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


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
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
@click.option(
    "--train-batch", default=64, show_default=True, type=click.IntRange(1), help="Documents of a training step."
)
@click.option(
    "--micro-batch",
    type=click.IntRange(1),
    help="Documents of it in memory at a time; gradients are added up.  [default: all]",
)
@click.option(
    "--target-tokens",
    type=click.IntRange(1),
    help="Length of the summaries in the training step.  [default: the config's longest]",
)
@click.option(
    "--decode-batch", default=8, show_default=True, type=click.IntRange(1), help="Documents decoded together."
)
@click.option(
    "--decode-tokens",
    default="256,512",
    show_default=True,
    callback=_numbers,
    metavar="N,...",
    help="How many tokens are written, in one timing each; none times training alone.",
)
@click.option("--repeats", default=5, show_default=True, type=click.IntRange(2), help="Timings of each kind.")
@click.option("--warmup", default=2, show_default=True, type=click.IntRange(0), help="Turns before them, not counted.")
@click.option("--vocab-size", default=32768, show_default=True, type=click.IntRange(5), help="Tokens the models know.")
@click.option("--seed", default=1, show_default=True, help="Of weights, documents and dropout.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write all numbers to this file.")
def time_command(configs: tuple[str, ...], out: Path | None, **settings: Any) -> None:
    """Time a training step and the decoding of an exact number of tokens, on synthetic documents of full length.

    CONFIG is a preset or a .yaml file of configs/; what holds a = is an override for all files, in Hydra's words.
    Several configs take turns, and each is compared with the first. A training step is forward, backward, clipping
    and Adam, dropout included; decoding is the encoder and a beam search as wide as the config's decoding_beam.

    \b
    Example:
      pyramidions time deep_blockwise deep_pyramidion --device cuda --micro-batch 8 --json times.json
    """
    from pyramidions.cli.outputs import check_output
    from pyramidions.data.atomic import atomic_file
    from pyramidions.measure.timing import Plan, report, time_models
    from pyramidions.models.experiment import read_experiment

    overrides = tuple(word for word in configs if "=" in word)
    names = [word for word in configs if word not in overrides]
    if not names:
        raise UserError(f"At least one config must be named, but only overrides are: {' '.join(overrides)}.")
    check_output("--json", out, "a JSON file", map(Path, names))
    plan = Plan(**settings)
    experiments = [read_experiment(name, overrides) for name in names]
    results = time_models(experiments, plan, _bar)
    result = report(experiments, plan, results, overrides)
    click.echo(_table([experiment.name for experiment in experiments], results))
    click.echo(f"\n{_signature(plan, result)}")
    if out is not None:
        with atomic_file(out) as file:
            file.write((json.dumps(result, indent=1) + "\n").encode())


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
