"""Presets as fairseq's `--arch` names, and what our models take from its dictionary."""

from collections.abc import Callable, Mapping
from typing import Any

from fairseq.models import ARCH_CONFIG_REGISTRY, register_model_architecture
from omegaconf import DictConfig

_MARKERS = ("<n>", "<t>")
_SPACE = "▁"


def register_presets(model: str, presets: Mapping[str, Mapping[str, Any]]) -> None:
    """Register presets as architectures of a model.

    Args:
        model: the name under which it is registered.
        presets: the fields that each sets, by its name.
    """
    for name, fields in presets.items():
        if name in ARCH_CONFIG_REGISTRY:
            # fairseq files each model under its own name as an architecture without settings; this one has some.
            ARCH_CONFIG_REGISTRY[name] = _filling_in(fields)
        else:
            register_model_architecture(model, name)(_filling_in(fields))


def _filling_in(fields: Mapping[str, Any]) -> Callable[[Any], None]:
    """Return the function that fairseq calls to fill in what the command line left open."""

    def fill(args: Any) -> None:
        for key, value in fields.items():
            if key not in (args if isinstance(args, DictConfig) else vars(args)):
                setattr(args, key, value)

    return fill


def marker_of(dictionary: Any) -> int | None:
    """Return the index of the marker of sentences or turns in a dictionary, or None if it has none."""
    return next((int(dictionary.indices[name]) for name in _MARKERS if name in dictionary.indices), None)


def space_of(dictionary: Any) -> int | None:
    """Return the index of the space in a dictionary of characters, or None if it has none."""
    return int(dictionary.indices[_SPACE]) if _SPACE in dictionary.indices else None
