"""`pyramidions cost`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.options import PATH, user_dir_option
from pyramidions.cli.outputs import check_output, columns, write_json

if TYPE_CHECKING:
    from pyramidions.models import PyramidionConfig
    from pyramidions.runs.measure import Comparison, Cost, CostPart, Lengths

_TARGET, _PIECES = 512, 32768
_LEGEND = """
10^9: multiplications of one forward pass as in training; a step with its backward pass commonly counts three times.
MB:   10^6 bytes kept for the backward pass: float32, fused attention, a byte a value for dropout (after ReLU none).
""".strip()


@click.command(short_help="Count multiplications and activation memory of a config.")
@click.argument("configs", nargs=-1, required=True, metavar="CONFIG... [OVERRIDE]...")
@click.option("--source-tokens", type=click.IntRange(1), help="Tokens of a document.  [default: the config's most]")
@click.option(
    "--target-tokens", type=click.IntRange(1), help="Tokens of a summary.  [default: 512, or the config's most]"
)
@click.option("--batch", type=click.IntRange(1), help="Documents at once.  [default: 1]")
@click.option("--vocab-size", type=click.IntRange(5), help=f"Pieces, specials included.  [default: {_PIECES}]")
@click.option("--check", is_flag=True, help="Compare with a real run of a small instance of each config.")
@user_dir_option
@click.option("--json", "out", type=PATH, help="Write all numbers to this file.")
def cost(configs: tuple[str, ...], check: bool, out: Path | None, **sizes: int | None) -> None:
    """Count multiplications, activation memory and parameters of configs, by part.

    CONFIG is a preset, or a .yaml file in a folder beside base.yaml. OVERRIDE is KEY=VALUE, as in Hydra, and changes
    every config. --source-tokens may not exceed task.max_source_positions of a file. Several configs are compared with
    the first.

    Nothing is computed: the model runs on tensors without memory. Multiplications are those of one forward pass in
    training; a training step takes about three times as many. Activations are what a training step keeps for its
    backward pass, in float32 with fused attention, as on a GPU.

    \b
    Example:
      pyramidions cost deep_blockwise deep_pyramidion --check
      pyramidions cost configs/table3/deep_pyramidion.yaml task.max_source_positions=4096
    """
    from pyramidions.runs.measure import compare, cost_of, shrink

    overrides = tuple(word for word in configs if "=" in word)
    names = _names(configs)
    check_output("--json", out, "an older file of costs", [Path(name) for name in names])

    shapes = {name: _read(name, overrides, sizes) for name in names}
    costs = {name: cost_of(*shape) for name, shape in shapes.items()}
    result: dict[str, Any] = {"configs": [{"name": name, **found.as_json()} for name, found in costs.items()]}
    texts = [cost_table(costs)]
    comparisons = {name: compare(*shrink(*shape)) for name, shape in shapes.items() if check}
    if check:
        result["checks"] = {name: comparison.as_json() for name, comparison in comparisons.items()}
    texts += [comparison_table(*named) for named in comparisons.items()]
    click.echo("\n\n".join(texts))
    write_json(out, result)
    if differing := [name for name, comparison in comparisons.items() if not comparison.agrees()]:
        raise UserError(f"What is counted differs from a run for {', '.join(differing)}.")


def _names(configs: tuple[str, ...]) -> list[str]:
    names = [word for word in configs if "=" not in word]
    if not names:
        raise UserError(f"At least one config must be named, but only overrides are: {' '.join(configs)}.")
    if repeated := [name for i, name in enumerate(names) if name in names[:i]]:
        raise UserError(f"CONFIG must name another one each time, but {repeated[0]} comes twice.")
    return names


def _read(name: str, overrides: tuple[str, ...], sizes: dict[str, int | None]) -> "tuple[PyramidionConfig, Lengths]":
    """Return a config and the lengths that are asked for, or its own."""
    from pyramidions.models.experiment import read_experiment, with_lengths
    from pyramidions.runs.measure import Lengths

    source, target = sizes["source_tokens"], sizes["target_tokens"]
    found = with_lengths(read_experiment(name, overrides), source, target)
    target = target or min(_TARGET, found.max_target_positions)
    return found.model, Lengths(found.max_source_positions, target, sizes["batch"] or 1, sizes["vocab_size"] or _PIECES)


def cost_table(costs: "Mapping[str, Cost]") -> str:
    """Return tables of work and memory by part, each config beside the first of ``costs``, by name."""
    sizes = {name: f"{cost.parameters / 1e6:.1f} million parameters" for name, cost in costs.items()}
    lines = [f"{name}: {_described(cost.lengths)}, {sizes[name]}" for name, cost in costs.items()]
    work = {name: cost.multiplications() for name, cost in costs.items()}
    kept = {name: cost.activations for name, cost in costs.items()}
    lines += ["", *_by_part("10^9", work, "{:,.3f}", 1e9), "", *_by_part("MB", kept, "{:,.1f}", 1e6), "", _LEGEND]
    if len(costs) > 1:
        lines.append(f"less: how many times less than {next(iter(costs))}.")
    return "\n".join(lines)


def _by_part(unit: str, figures: "Mapping[str, Mapping[CostPart, int]]", form: str, divisor: float) -> list[str]:
    """Return a line for each part, with the figure of each config, its share, and how many times less it is."""
    parts = next(iter(figures.values()))
    rows = [[unit], *([part.value] for part in parts), ["total"]]
    first: list[int] = []
    for name, counts in figures.items():
        total = sum(counts.values())
        figure = [*counts.values(), total]
        cells = [[name if len(name) <= 30 else f"...{name[-27:]}", "share", *(["less"] if first else [])]]
        for n, count in enumerate(figure):
            less = [f"{first[n] / count:.2f}x" if first[n] and count else ""] if first else []
            cells.append([form.format(count / divisor), f"{100 * count / total:.1f}%", *less])
        rows = [[*row, *more] for row, more in zip(rows, cells, strict=True)]
        first = first or figure
    return columns(rows)


def _described(lengths: "Lengths") -> str:
    return (
        f"documents of {lengths.source} tokens, summaries of {lengths.target}, batch {lengths.batch}, "
        f"vocabulary {lengths.vocab_size}"
    )


def comparison_table(name: str, comparison: "Comparison") -> str:
    """Return what is counted without computing and what is counted in a run, by part."""
    rows: list[Sequence[str]] = [("part", "matrix products counted", "in a run", "bytes counted", "in a run")]
    for part in comparison.counted.products:
        figures = [cost.products[part] for cost in comparison] + [cost.activations[part] for cost in comparison]
        rows.append((part, *(f"{figure:,}" for figure in figures)))
    verdict = "All figures are equal." if comparison.agrees() else "Figures differ."
    return "\n".join([f"{name}, small: {_described(comparison.counted.lengths)}", *columns(rows), verdict])
