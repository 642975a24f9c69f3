"""Whether a checkpoint of fairseq's fits a model: its vocabulary, and the names and shapes of its weights."""

import hashlib
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from pyramidions.nn.output import Pointer
from pyramidions.nn.scorer import Scorer

logger = logging.getLogger(__name__)

#: Under this name the fingerprint of the vocabulary travels among the weights.
VOCABULARY = "vocabulary"


def fingerprint(dictionary: Any) -> int:
    """Return a number that two dictionaries share only if they have the same symbols in the same order."""
    return fingerprint_of(dictionary.symbols)


def fingerprint_of(symbols: Iterable[str]) -> int:
    """Return the `fingerprint` of a dictionary with these symbols."""
    digest = hashlib.sha256("\n".join(symbols).encode()).digest()
    return int.from_bytes(digest[:7], "big")


def refuse_vocabulary(given: dict[str, Tensor], expected: int) -> None:
    """Refuse weights of another vocabulary; weights that do not name theirs are taken for the model's, in place.

    fairseq compares no dictionaries when it resumes or fine-tunes; equal sizes would train on mixed-up words.

    Raises:
        ValueError: another vocabulary.
    """
    # Compared as integers: the model may be on a GPU, and the given weights on the CPU.
    if int(given.setdefault(VOCABULARY, torch.tensor(expected))) != expected:
        raise ValueError(
            "The checkpoint was trained with another vocabulary than that of the data: prepare the data with its "
            "tokenizer (pyramidions prepare --tokenizer)."
        )


def refuse_architecture(given: dict[str, Tensor], model: nn.Module, *, may_add_parts: bool = False) -> None:
    """Refuse weights whose names or shapes are not those of a model.

    Args:
        given: the weights. New parts may be added, in place.
        model: its own scorers and pointer stand in for those that the weights lack.
        may_add_parts: whether they may, as where fine-tuning begins to pool or to copy.

    Raises:
        ValueError: another architecture.
    """
    own = model.state_dict()
    if may_add_parts and (new := new_parts(given, model)):
        given.update({name: own[name] for names in new.values() for name in names})
        logger.warning("The checkpoint lacks these parts, which begin at random: %s.", ", ".join(new))
    if problems := misfits(given, own):
        raise ValueError(f"The checkpoint is of another architecture: it {', and '.join(problems)}.")


def new_parts(given: Collection[str], model: nn.Module) -> dict[str, set[str]]:
    """Return the scorers and the pointer of a model of which ``given`` names no weight, each with its weights."""
    parts = {
        prefix: {f"{prefix}.{name}" for name in module.state_dict()}
        for prefix, module in model.named_modules()
        if isinstance(module, Scorer | Pointer)
    }
    return {prefix: names for prefix, names in parts.items() if names and names.isdisjoint(given)}


def misfits(given: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> list[str]:
    """Return in which ways the names or shapes of weights differ from a model's own; nothing if they fit."""
    problems = []
    for verb, keys in (("lacks", own.keys() - given.keys()), ("has unknown", given.keys() - own.keys())):
        if keys:
            problems.append(f"{verb} {len(keys)} weights (the first: {min(keys)})")
    other = [key for key in own if key in given and own[key].shape != given[key].shape]
    if other:
        key = other[0]
        problems.append(
            f"has {len(other)} weights of another shape (the first: {key}, "
            f"{tuple(given[key].shape)} instead of {tuple(own[key].shape)})"
        )
    return problems
