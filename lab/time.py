"""`python -m lab time`."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.outputs import PATH, check_output, write_json

if TYPE_CHECKING:
    from lab.timing import Plan, Timed


#: What a CPU does in minutes; a GPU gets the sizes of the paper's table 10.
_ON_CPU: dict[str, Any] = {"train_batch": 2, "decode_batch": 2, "decode_tokens": (32,)}


def _numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    if value == "none":
        return ()
    numbers = value.split(",")
    # Two timings of one length would have one name.
    if not all(re.fullmatch("[1-9][0-9]*", number) for number in numbers) or len(set(numbers)) < len(numbers):
        raise click.BadParameter(f"{value!r} is neither none nor a list of different numbers like 256,512.")
    return tuple(map(int, numbers))


@click.command("time", short_help="Time a training step and decoding.")
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG... [OVERRIDES]")
@click.option("--device", default="cpu", type=click.Choice(["cpu", "cuda"]), help="What computes.")
@click.option("--precision", default="fp32", type=click.Choice(["fp32", "bf16"]), help="bf16: by autocast.")
@click.option("--train-batch", type=click.IntRange(1), help="Documents of a training step.  [default: 64; on a CPU 2]")
@click.option("--micro-batch", type=click.IntRange(1), help="Documents of it in memory at a time.  [default: all]")
@click.option("--source-tokens", type=click.IntRange(2), help="Tokens of a document.  [default: the config's most]")
@click.option(
    "--target-tokens", type=click.IntRange(1), help="Tokens of a summary to train on.  [default: the config's most]"
)
@click.option("--decode-batch", type=click.IntRange(1), help="Documents decoded together.  [default: 8; on a CPU 2]")
@click.option(
    "--decode-tokens",
    callback=_numbers,
    metavar="N,...",
    help="How many tokens are written, in one timing each; none times training alone.  [default: 256,512; on a CPU 32]",
)
@click.option("--repeats", default=5, type=click.IntRange(2), help="Timings of each kind.")
@click.option("--warmup", default=2, type=click.IntRange(0), help="Turns before them, not counted.")
@click.option("--vocab-size", default=32768, type=click.IntRange(5), help="Tokens the models know.")
@click.option("--seed", default=1, type=click.IntRange(0, 2**63 - 1), help="Of weights, documents and dropout.")
@click.option("--json", "out", type=PATH, help="Write all numbers to this file.")
def time_command(configs: tuple[str, ...], source_tokens: int | None, out: Path | None, **settings: Any) -> None:
    """Time a training step and the decoding of an exact number of tokens, on synthetic documents of full length.

    CONFIG is a preset or a .yaml file of configs/; OVERRIDE is KEY=VALUE in Hydra's words and changes every config. A
    preset is made for documents of --source-tokens; of a file they are at most its task.max_source_positions.
    Several configs take turns, and each is compared with the first. A training step is forward, backward, clipping
    and Adam, dropout included; decoding is the encoder and a beam search as wide as the config's decoding_beam.

    On a CPU the default batches are small.

    \b
    Example:
      python -m lab time deep_blockwise deep_pyramidion --source-tokens 2048
      python -m lab time pyramidion model.pooling=mean --device cuda --micro-batch 8 --json times.json
    """
    from lab.timing import Plan, report, time_models
    from pyramidions.models.experiment import read_experiment, with_lengths

    overrides = tuple(given for given in configs if "=" in given)
    names = [given for given in configs if given not in overrides]
    if not names:
        raise UserError(f"At least one config must be named, but only overrides are: {' '.join(overrides)}.")
    check_output("--json", out, "an older file of times", map(Path, names))
    chosen = {name: value for name, value in settings.items() if value is not None}
    plan = Plan(**{**(_ON_CPU if settings["device"] == "cpu" else {}), **chosen})
    experiments = [with_lengths(read_experiment(name, overrides), source_tokens, plan.target_tokens) for name in names]
    results = time_models(experiments, plan, _bar)
    result = report(experiments, plan, results, overrides)
    click.echo(_table([experiment.name for experiment in experiments], results))
    click.echo(f"\n{_signature(plan, result)}")
    write_json(out, result)


@contextmanager
def _bar(phase: str, calls: int) -> Iterator[Callable[[], object]]:
    from pyramidions.files.progress import progress_bar

    with progress_bar(phase, calls, "step") as shown:
        yield shown.update


def _table(names: list[str], results: "list[dict[str, Timed]]") -> str:
    import pandas as pd

    first = results[0]

    def table(cell: "Callable[[Timed, Timed], str]", head: str = "") -> str:
        cells = [{phase + head: cell(result[phase], first[phase]) for phase in first} for result in results]
        return pd.DataFrame(cells, names).to_string()

    def ratio(timed: "Timed", first: "Timed") -> str:
        between = timed.ratio_to(first)
        return f"{between['medians']:.3f} [{between['low']:.3f}, {between['high']:.3f}]"

    parts = [table(lambda timed, _: f"{timed.mean:.4g} ± {timed.deviation:.2g}", ", s")]
    if any(timed.peak_bytes is not None for timed in first.values()):
        parts.append(table(lambda timed, _: f"{(timed.peak_bytes or 0) / 2**30:.2f}", ", peak GiB"))
    if len(names) > 1:
        title = f"Ratio of medians to {names[0]} [lowest, highest of two neighbouring turns]:"
        parts.append(f"{title}\n{table(ratio)}")
    return "\n\n".join(parts)


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
