"""The settings of a run, as Hydra composes them."""

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
