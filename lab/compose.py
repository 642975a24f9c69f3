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
    """
    with _COMPOSING:
        return _composed(configs, overrides)


@cache
def composed_of_characters(configs: Path, overrides: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of a language model's run, whose base is dynamic_pooling.yaml; arguments as in `composed`."""
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with _COMPOSING, initialize_config_dir(str(configs.resolve()), version_base="1.1"):
        run: Any = OmegaConf.to_container(compose("dynamic_pooling", overrides=list(overrides)))
    return run


@cache
def _composed(configs: Path, overrides: tuple[str, ...]) -> Experiment:
    return read_experiment(str(configs / "base.yaml"), overrides)


def settings_hash(settings: Any) -> str:
    """Return a hash of settings, as plain values."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
