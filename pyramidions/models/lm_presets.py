"""Language models: each the fields in which it differs from the defaults of their config."""

from typing import Any

from pyramidions.models.lm_config import LanguageModelConfig
from pyramidions.models.presets import preset_of


def _fixed(factor: int) -> dict[str, Any]:
    return {"boundaries": f"fixed(factor={factor})"}


#: Nawrot et al. 2023, table 1: name to the fields that differ from `LanguageModelConfig`'s defaults.
LANGUAGE_MODEL_PRESETS: dict[str, dict[str, Any]] = {
    "hourglass_vanilla": {},
    "hourglass_fixed_2": _fixed(2),
    "hourglass_fixed_3": _fixed(3),
    "hourglass_fixed_4": _fixed(4),
    "hourglass_whitespace": {"boundaries": "whitespace"},
    "hourglass_gumbel": {"boundaries": "gumbel"},
    "hourglass_unigram": {"boundaries": "unigram"},
    "hourglass_entropy": {"boundaries": "entropy"},
}


def language_model_preset(name: str, **overrides: Any) -> LanguageModelConfig:
    """Return the config of a language model by name, e.g. ``language_model_preset("hourglass_gumbel", dropout=0.0)``.

    Raises:
        UserError: an unknown architecture or field.
    """
    return preset_of(name, LANGUAGE_MODEL_PRESETS, LanguageModelConfig, overrides)
