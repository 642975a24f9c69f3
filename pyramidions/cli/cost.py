"""`pyramidions cost`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.errors import UserError

if TYPE_CHECKING:
    from pyramidions.measure import Lengths
    from pyramidions.models import PyramidionConfig

_TARGET, _VOCABULARY = 512, 32768


@click.command(short_help="Count multiplications and activation memory of a config.")
@click.argument("configs", nargs=-1, metavar="[CONFIG]... [OVERRIDE]...")
@click.option("--source-tokens", type=click.IntRange(1), help="Tokens of a document.  [default: the config's most]")
@click.option(
    "--target-tokens", type=click.IntRange(1), help="Tokens of a summary.  [default: 512, or the config's most]"
)
@click.option("--batch", type=click.IntRange(1), help="Documents at once.  [default: 1]")
@click.option("--vocab-size", type=click.IntRange(1), help=f"Pieces, specials included.  [default: {_VOCABULARY}]")
@click.option("--check", is_flag=True, help="Compare with a real run of a small instance of each config.")
@click.option("--claims", "with_claims", is_flag=True, help="Count what the paper claims; needs no config.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write all numbers to this file.")
def cost(
    configs: tuple[str, ...],
    source_tokens: int | None,
    target_tokens: int | None,
    batch: int | None,
    vocab_size: int | None,
    check: bool,
    with_claims: bool,
    out: Path | None,
) -> None:
    """Count multiplications, activation memory and parameters of configs, by part.

    CONFIG is a preset, or a .yaml file in a folder beside base.yaml; OVERRIDE is KEY=VALUE in Hydra's words and
    changes every config. A preset is made for documents of --source-tokens; of a file they are at most its
    task.max_source_positions. Several configs stand side by side, with ratios to the first.

    Nothing is computed: the model runs on tensors that have a shape and no memory. Multiplications are those of one
    forward pass as in training; a training step commonly counts three times as many. Activations are what one training
    step keeps for its backward pass in float32 with fused attention, as on a GPU.

    \b
    Example:
      pyramidions cost deep_blockwise deep_pyramidion --check
      pyramidions cost configs/table3/deep_pyramidion.yaml task.max_source_positions=4096
      pyramidions cost --claims
    """
    from pyramidions.cli.outputs import check_output
    from pyramidions.measure import cost_of
    from pyramidions.measure.cost_tables import claim_table, comparison_table, cost_table, order_table

    names = [given for given in configs if "=" not in given]
    overrides = tuple(given for given in configs if "=" in given)
    if not names:
        if not with_claims:
            raise UserError("Name at least one config, or ask for --claims.")
        _refuse_without_config(
            {
                "An override": overrides,
                "--source-tokens": source_tokens,
                "--target-tokens": target_tokens,
                "--batch": batch,
                "--vocab-size": vocab_size,
                "--check": check,
            }
        )
    if repeated := [name for i, name in enumerate(names) if name in names[:i]]:
        raise UserError(f"CONFIG must name another one each time, but {repeated[0]} comes twice.")
    check_output("--json", out, "an older file of costs", [Path(name) for name in names])

    shapes = {name: _read(name, overrides, source_tokens, target_tokens, batch, vocab_size) for name in names}
    result: dict[str, Any] = {}
    texts: list[str] = []
    differing: list[str] = []
    if shapes:
        costs = {name: cost_of(*shape) for name, shape in shapes.items()}
        result["configs"] = [{"name": name, **found.as_json()} for name, found in costs.items()]
        texts.append(cost_table(costs))
    if check:
        from pyramidions.measure import compare, shrink

        comparisons = {name: compare(*shrink(*shape)) for name, shape in shapes.items()}
        result["checks"] = {name: comparison.as_json() for name, comparison in comparisons.items()}
        texts += [comparison_table(*named) for named in comparisons.items()]
        differing = [name for name, comparison in comparisons.items() if not comparison.agrees()]
    if with_claims:
        from pyramidions.measure import claims, orders

        told, growths = claims(), orders()
        result |= {"claims": [c._asdict() for c in told], "orders": [c._asdict() for c in growths]}
        texts += [claim_table(told), order_table(growths)]
    click.echo("\n\n".join(texts))
    if out is not None:
        _write(out, result)
    if differing:
        raise UserError(f"What is counted differs from a run for {', '.join(differing)}.")


def _refuse_without_config(given: dict[str, Any]) -> None:
    for option, value in given.items():
        if value:
            raise UserError(f"{option} has a meaning only with a config.")


def _read(
    name: str,
    overrides: tuple[str, ...],
    source: int | None,
    target: int | None,
    batch: int | None,
    vocab_size: int | None,
) -> "tuple[PyramidionConfig, Lengths]":
    """Return a config and the lengths that are asked for, or its own."""
    from pyramidions.measure import Lengths
    from pyramidions.models.experiment import read_experiment, with_lengths

    found = with_lengths(read_experiment(name, overrides), source, target)
    target = target or min(_TARGET, found.max_target_positions)
    return found.model, Lengths(found.max_source_positions, target, batch or 1, vocab_size or _VOCABULARY)


def _write(out: Path, result: dict[str, Any]) -> None:
    from pyramidions.data.atomic import atomic_file

    with atomic_file(out) as file:
        file.write((json.dumps(result, indent=1) + "\n").encode())
