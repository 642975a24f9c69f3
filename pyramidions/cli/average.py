"""`pyramidions average`."""

from pathlib import Path
from typing import Any

import click

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.cli.outputs import PATH


@click.command()
@click.argument("checkpoints", nargs=-1, required=True, type=PATH)
@click.option("-o", "--out", required=True, type=PATH, help="The checkpoint to write.")
def average(checkpoints: tuple[Path, ...], out: Path) -> None:
    """Average the weights of fairseq checkpoints.

    Configuration and task state are taken from the last one. The optimizer's state is dropped.

    \b
    Example:
      pyramidions average checkpoints/checkpoint{8,9,10}.pt -o averaged.pt
    """
    import torch

    from pyramidions.cli.outputs import check_output
    from pyramidions.files.atomic import atomic_file
    from pyramidions.files.progress import counted

    check_output("--out", out, "a checkpoint", checkpoints)
    state = average_checkpoints(checkpoints)
    with atomic_file(out) as file:
        try:
            torch.save(state, file)
        except RecursionError:
            raise UserError(f"{checkpoints[-1]} is damaged: its values are nested too deeply.") from None
        except RuntimeError as error:
            # torch wraps the error of the disk into one of its own.
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
    click.echo(f"{out}: the average of {counted(len(checkpoints), 'checkpoint')}")


def average_checkpoints(paths: tuple[Path, ...]) -> dict[str, Any]:
    """Average the floating-point weights of checkpoints, summing in float64 and returning float32.

    Weights that share memory, such as tied embeddings, still do. Whole numbers are taken from the last one.

    Args:
        paths: at least one checkpoint; one at a time is in memory beside the sum.

    Returns:
        A checkpoint that torch's safe loading reads.

    Raises:
        UserError: a file is missing, damaged or no checkpoint, or its weights are not finite; or two checkpoints differ
            in architecture, in the format of their settings, or in the names or shapes of their weights.
    """
    import torch

    from pyramidions.pretrained.checkpoint_file import read_checkpoint

    sums: dict[str, torch.Tensor] = {}
    first: dict[str, Any] = {}
    state: dict[str, Any] = {}
    for path in paths:
        state = read_checkpoint(path)
        first = first or {"path": path, "architecture": _architecture(state), "format": _format(state)}
        weights = state["model"]
        if sums:
            _refuse_other(first, sums, path, state)
        for name, owner in _owners(weights).items():
            if name != owner or not weights[name].is_floating_point():
                sums[name] = sums.get(name, weights[name])
            elif name in sums:
                sums[name] += weights[name].double()
            else:
                sums[name] = weights[name].double().clone()
    weights = state["model"]
    averaged: dict[str, torch.Tensor] = {}
    for name, owner in _owners(weights).items():
        if name != owner:
            averaged[name] = averaged[owner]
        elif weights[name].is_floating_point():
            averaged[name] = (sums.pop(name) / len(paths)).float()
        else:
            averaged[name] = weights[name]
    return {**{k: v for k, v in state.items() if k != "last_optimizer_state"}, "model": averaged}


def _architecture(state: dict[str, Any]) -> str:
    config = state.get("cfg") or {}
    model = config.get("model") or {}
    return str(model.get("arch") or model.get("_name") or "unknown")


def _format(state: dict[str, Any]) -> Any:
    """Return the format of a checkpoint's settings, in which equal weights mean equal models; None if it says none."""
    return ((state.get("cfg") or {}).get("model") or {}).get("config_format")


def _refuse_other(first: dict[str, Any], sums: dict[str, Any], path: Path, state: dict[str, Any]) -> None:
    architecture, weights = _architecture(state), state["model"]
    if architecture != first["architecture"]:
        raise UserError(
            f"All checkpoints must have one architecture, but {first['path']} is a {first['architecture']} "
            f"and {path} a {architecture}."
        )
    if _format(state) != first["format"]:
        formats = [shown(each) for each in (first["format"], _format(state))]
        raise UserError(
            f"All checkpoints must be of one format of settings, which releases differ in, but {first['path']} is of "
            f"{formats[0]} and {path} of {formats[1]}."
        )
    if other := sorted(sums.keys() ^ weights.keys()):
        raise UserError(
            f"All checkpoints must have the same weights, but only one of {first['path']} and {path} has {other[0]}."
        )
    for name, weight in weights.items():
        if weight.shape != sums[name].shape:
            raise UserError(
                f"All checkpoints must have weights of one shape, but {name} is {tuple(sums[name].shape)} in "
                f"{first['path']} and {tuple(weight.shape)} in {path}."
            )


def _owners(weights: dict[str, Any]) -> dict[str, str]:
    """Return for each weight the first one in the same memory, in most cases itself."""
    first: dict[tuple[Any, ...], str] = {}
    owners = {}
    for name, weight in weights.items():
        place = (weight.data_ptr(), weight.shape, weight.stride()) if weight.numel() else (name,)
        owners[name] = first.setdefault(place, name)
    return owners
