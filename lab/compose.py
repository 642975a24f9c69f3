"""The settings of a run, as Hydra composes them, and whether the model of one fits another."""

import hashlib
import json
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyramidions.models.experiment import Experiment, read_experiment

if TYPE_CHECKING:
    from torch import nn

#: Hydra composes one config at a time.
_COMPOSING = Lock()


def composed(configs: Path, overrides: tuple[str, ...]) -> Experiment:
    """Return a run, whose values callers do not change.

    Args:
        configs: the folder with base.yaml, whose files stay as they are.
        overrides: in Hydra's syntax.

    Raises:
        UserError: a config that breaks a rule.
    """
    with _COMPOSING:
        return _composed(configs, overrides)


@cache
def _composed(configs: Path, overrides: tuple[str, ...]) -> Experiment:
    return read_experiment(str(configs / "base.yaml"), overrides)


def settings_hash(settings: Any) -> str:
    """Return a hash of settings, as plain values."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


@cache
def may_start_from(configs: Path, before: tuple[str, ...], after: tuple[str, ...]) -> bool:
    """Return whether the weights of a run fit the model of another, which has new scorers or a new pointer at most.

    Args:
        configs: as in `composed`.
        before: what composes the first run, in Hydra's syntax.
        after: likewise the second.
    """
    # Imported late: listing rows needs no torch.
    from pyramidions.models.fitting import misfits, new_parts

    given, model = _model(composed(configs, before)).state_dict(), _model(composed(configs, after))
    own = model.state_dict()
    given.update({name: own[name] for names in new_parts(given, model).values() for name in names})
    return not misfits(given, own)


def _model(experiment: Experiment) -> "nn.Module":
    """Return a model without memory, for a vocabulary of any size that has a sentence marker."""
    import torch

    from pyramidions.models import build

    with torch.device("meta"):
        return build(experiment.model, 8, 1, 4, experiment.max_target_positions)
