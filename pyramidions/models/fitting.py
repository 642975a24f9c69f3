"""Whether weights and configs of before fit a model: its vocabulary, its parts, and the names and shapes of weights."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, lengths_in, parse_part, parse_parts
from pyramidions.models.config import PyramidionConfig
from pyramidions.models.fields import part_fields, same_parts
from pyramidions.models.formats import VOCABULARY
from pyramidions.nn.output import Pointer
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.scorer import Scorer
from pyramidions.nn.stack import STACK

logger = logging.getLogger(__name__)


def refuse_vocabulary(given: dict[str, Tensor], expected: int) -> None:
    """Refuse weights of another vocabulary; weights that do not name theirs are taken for the model's.

    fairseq compares no dictionaries when it resumes or fine-tunes; equal sizes would train on mixed-up words.
    """
    # Compared as integers: the model may be on a GPU, and the given weights on the CPU.
    if int(given.setdefault(VOCABULARY, torch.tensor(expected))) != expected:
        raise UserError(
            "The checkpoint was trained with another vocabulary than that of the data: prepare the data with its "
            "tokenizer (pyramidions prepare --tokenizer)."
        )


def check_fits(rule: str, given: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Refuse weights whose names, shapes or kinds of numbers are not a model's own; the error begins with a rule."""
    for name in [*own, *given]:
        if name not in given:
            raise UserError(f"{rule}: {name} is missing.")
        if name not in own:
            raise UserError(f"{rule}: {name} has no place in the model.")
        if (shape := tuple(given[name].shape)) != (right := tuple(own[name].shape)):
            raise UserError(f"{rule}: {name} must be {right}, but is {shape}.")
        # Buffers may hold whole numbers, such as counters.
        if given[name].is_floating_point() != own[name].is_floating_point():
            kind = "floating-point" if own[name].is_floating_point() else "whole"
            raise UserError(f"{rule}: {name} must be {kind} numbers, but is {given[name].dtype}.")


def refuse_architecture(given: dict[str, Tensor], model: nn.Module, *, may_add_parts: bool = False) -> None:
    """Refuse weights that are not those of a model, as `check_fits` does.

    Where they may add parts, as where fine-tuning begins to pool or to copy, the model's own scorers and pointer stand
    in for those that the weights lack: these are added to ``given``.
    """
    own = model.state_dict()
    if may_add_parts and (new := new_parts(given, model)):
        given.update({name: own[name] for names in new.values() for name in names})
        logger.warning("The checkpoint lacks these parts, which begin at random: %s.", ", ".join(new))
    check_fits("The checkpoint is of another architecture than the settings say", given, own)


def new_parts(given: Collection[str], model: nn.Module) -> dict[str, set[str]]:
    """Return the scorers and the pointer of a model of which ``given`` names no weight, each with its weights."""
    parts = {
        prefix: {f"{prefix}.{name}" for name in module.state_dict()}
        for prefix, module in model.named_modules()
        if isinstance(module, Scorer | Pointer)
    }
    return {prefix: names for prefix, names in parts.items() if names and names.isdisjoint(given)}


_PARTS = (*part_fields(PyramidionConfig), "pooling_lengths", "memories")
#: Options, with their defaults, by which parts compute what 0.2.0 did. The same weights mean another model without.
_OF_0_2_0 = {"is_flat": False, "scaled": True}


def changed_part(before: Mapping[str, Any], now: Any) -> str | None:
    """Return the first field that names other kinds of parts than an earlier config did, or None.

    The layers of one model may be composed in another way, as memory allows, but not with another number of streams.
    The fields of before are by name, as far as they were known; now has fields as attributes, maybe an extractor's.
    """
    for name in _PARTS:
        if name in before and hasattr(now, name) and not _is_one_kind(name, before[name], getattr(now, name)):
            return name
    # A window is what one vector stands for in the longest document.
    name, poolers = "max_source_positions", parse_parts("pooling", getattr(now, "pooling", "none"))[0]
    is_fixed = getattr(now, "pooling_lengths", None) and any(POOLING[part.kind].takes_window for part in poolers)
    return name if is_fixed and name in before and before[name] != getattr(now, name) else None


def _is_one_kind(name: str, before: Any, now: Any) -> bool:
    if before is None or now is None or name == "memories":
        return bool(before == now)
    if name == "pooling_lengths":
        return lengths_in(before) == lengths_in(now)
    try:
        if name == "stack":
            first, second = (STACK[parse_part(name, text).kind].streams for text in (before, now))
            return bool(first == second)
        return same_parts(PyramidionConfig, name, before, now, _what_must_stay)
    except UserError:
        return False  # one that cannot be read says so where it is read


def _what_must_stay(part: Part) -> Part:
    return Part(part.kind, {name: part.options.get(name, default) for name, default in _OF_0_2_0.items()})
