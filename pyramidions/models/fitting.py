"""Whether a checkpoint of fairseq's fits a model: its vocabulary, and the names and shapes of its weights."""

import hashlib
import logging
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

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


def add_new_scorers(given: dict[str, Tensor], model: nn.Module) -> None:
    """Add, in place, a model's own scorers to weights that lack them, so that fine-tuning may begin to pool.

    A scorer of which the weights have a part is left as it is, for `refuse_architecture` to tell.
    """
    own = model.state_dict()
    new = 0
    for prefix, module in model.named_modules():
        if isinstance(module, Scorer):
            names = {f"{prefix}.{name}" for name in module.state_dict()}
            if names and not names & given.keys():
                given.update({name: own[name] for name in names})
                new += 1
    if new:
        logger.warning("The checkpoint has no weights for %d of the scorers: they begin at random.", new)


def refuse_architecture(given: Mapping[str, Tensor], model: nn.Module) -> None:
    """Refuse weights whose names or shapes are not those of a model.

    Raises:
        ValueError: another architecture.
    """
    own = model.state_dict()
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
    if problems:
        raise ValueError(f"The checkpoint is of another architecture: it {', and '.join(problems)}.")
