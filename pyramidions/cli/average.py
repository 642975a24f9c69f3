"""`pyramidions average`."""

from pathlib import Path
from typing import Any, NamedTuple

import click

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.cli.options import PATH


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
    from pyramidions.cli.outputs import check_output
    from pyramidions.files.progress import counted
    from pyramidions.pretrained.checkpoint_file import save_checkpoint

    check_output("--out", out, "a checkpoint", checkpoints)
    state = average_checkpoints(checkpoints)
    try:
        save_checkpoint(out, state)
    except RecursionError:
        raise UserError(f"{checkpoints[-1]} is damaged: its values are nested too deeply.") from None
    click.echo(f"{out}: the average of {counted(len(checkpoints), 'checkpoint')}")


def average_checkpoints(paths: tuple[Path, ...]) -> dict[str, Any]:
    """Average the floating-point weights of checkpoints, summing in float64 and returning float32.

    Weights that share memory, such as tied embeddings, still do. Whole numbers are taken from the last one.
    """
    import torch

    from pyramidions.pretrained.checkpoint_file import read_checkpoint

    sums: dict[str, torch.Tensor] = {}
    facts: _Facts | None = None
    state: dict[str, Any] = {}
    for path in paths:
        state = read_checkpoint(path)
        weights = state["model"]
        facts = facts or _facts(state)
        _refuse_other(paths[0], facts, path, _facts(state))
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


_MISSING = "missing"


class _Facts(NamedTuple):
    """What checkpoints of one model have in common."""

    settings: dict[str, Any]  # by name; a name that only one of two checkpoints has is of another release
    shapes: dict[str, tuple[int, ...]]  # of weights, by name


def _facts(state: dict[str, Any]) -> _Facts:
    from pyramidions.models.config import NO_SHAPE
    from pyramidions.models.formats import VOCABULARY

    config, weights = (state.get("cfg") or {}).get("model") or {}, state["model"]
    settings = {name: value for name, value in config.items() if not any(part in name for part in NO_SHAPE)}
    settings["arch"] = config.get("arch") or settings.pop("_name", None)
    # To compute activations again saves memory, and changes nothing else.
    if settings.get("stack") == "recomputing":
        settings["stack"] = "plain"
    if VOCABULARY in weights and weights[VOCABULARY].numel() == 1:
        settings["the fingerprint of the vocabulary"] = int(weights[VOCABULARY])
    return _Facts(settings, {name: tuple(weight.shape) for name, weight in weights.items()})


def _refuse_other(first: Path, facts: _Facts, path: Path, found: _Facts) -> None:
    common = facts.settings.keys() & found.settings.keys()
    ours, theirs = (
        {name: value for name, value in each.settings.items() if name in common} | each.shapes
        for each in (facts, found)
    )
    for name in {**ours, **theirs}:
        if ours.get(name, _MISSING) != theirs.get(name, _MISSING):
            one, other = (_said(each.get(name, _MISSING)) for each in (ours, theirs))
            raise UserError(
                f"All checkpoints must be of one model, but {name} is {one} in {first} and {other} in {path}."
            )


def _said(value: object) -> str:
    return str(value) if value == _MISSING or isinstance(value, tuple) else shown(value)


def _owners(weights: dict[str, Any]) -> dict[str, str]:
    """Return for each weight the first one in the same memory, in most cases itself."""
    first: dict[tuple[Any, ...], str] = {}
    owners = {}
    for name, weight in weights.items():
        place = (weight.data_ptr(), weight.shape, weight.stride()) if weight.numel() else (name,)
        owners[name] = first.setdefault(place, name)
    return owners
