"""What checkpoints and exports record of a model: the format of its fields, its kind and its vocabulary."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.models.config import ExtractorConfig, LanguageModelConfig, PyramidionConfig
from pyramidions.models.fields import part_fields
from pyramidions.models.presets import EXTRACTOR_PRESETS, LANGUAGE_MODEL_PRESETS, PRESETS

#: Under this name the fingerprint of the vocabulary travels among the weights.
VOCABULARY = "vocabulary"
#: Exports record it as `format`, checkpoints as `config_format`.
FORMAT = 3
#: Our kinds of models, as fairseq calls them, with their configs.
MODELS: dict[str, type[Any]] = {
    "pyramidion": PyramidionConfig,
    "pyramidion_extractor": ExtractorConfig,
    "pyramidion_lm": LanguageModelConfig,
}
#: Their architectures, which checkpoints name instead.
ARCHITECTURES: dict[str, type[Any]] = {
    **MODELS,
    **dict.fromkeys(PRESETS, PyramidionConfig),
    **dict.fromkeys(EXTRACTOR_PRESETS, ExtractorConfig),
    **dict.fromkeys(LANGUAGE_MODEL_PRESETS, LanguageModelConfig),
}
# What wrote the formats before; 0.1.0 and 0.2.0 recorded none in checkpoints.
_RELEASES = {None: "0.2.0 or before", 1: "0.1.0", 2: "0.2.0"}


def refuse_older(place: Path | str, written: Any) -> None:
    """Refuse a model of another format than today's, given the one that it records, or None."""
    if written is None or (type(written) is int and written in _RELEASES):
        raise _older(place, _RELEASES[written])
    if type(written) is not int or written != FORMAT:
        raise UserError(f"{place} must be of format {FORMAT}, but is of {shown(written)}.")


def refuse_older_checkpoint(place: Path | str, config: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of a model of ours, with this config, that is of another format; as `refuse_older`."""
    kind = ARCHITECTURES.get(str(config.get("_name")))
    if kind is None:
        return
    refuse_older(place, config.get("config_format"))
    if any(config.get(f"{name}_args") is not None for name in part_fields(kind)):
        raise _older(place, "0.3 under development")


def _older(place: Path | str, release: str) -> UserError:
    return UserError(f"{place} was written by pyramidions {release}: `python scripts/upgrade.py OLD NEW` rewrites it.")


def fingerprint(symbols: Iterable[str]) -> int:
    """Return a number that two vocabularies share only if they have the same symbols in the same order."""
    digest = hashlib.sha256("\n".join(symbols).encode()).digest()
    return int.from_bytes(digest[:7], "big")
