"""The settings of a run, as Hydra composes them, and whether the model of one fits another."""

import hashlib
import json
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from pyramidions.models.experiment import Experiment, read_experiment

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


def differ_in_scorers_alone(configs: Path, fewer: tuple[str, ...], more: tuple[str, ...]) -> bool:
    """Return whether fine-tuning can go from the model of one run to that of another, and at most add scorers.

    Args:
        configs: as in `composed`.
        fewer: what composes the first run, in Hydra's syntax.
        more: likewise the second.
    """
    before, after = (_shapes(composed(configs, overrides)) for overrides in (fewer, more))
    return before.items() <= after.items() and all(".scorer." in name for name in after.keys() - before.keys())


def _shapes(experiment: Experiment) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a model's weights by name."""
    # Imported late: listing rows needs no torch.
    import torch

    from pyramidions.models import build

    with torch.device("meta"):
        # Of a vocabulary of any size, with a sentence marker.
        model = build(experiment.model, 8, 1, 4, experiment.max_target_positions)
    return {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
