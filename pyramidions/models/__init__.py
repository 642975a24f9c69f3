"""Configs, presets and builders, without fairseq; it sees `pyramidion`, `pyramidion_extractor` and `pyramidion_lm`."""

from pyramidions.base.optional import without_torch

try:
    from pyramidions.models.builder import build, build_extractor, build_language_model
    from pyramidions.models.config import ExtractorConfig, LanguageModelConfig, PyramidionConfig
    from pyramidions.models.presets import (
        EXTRACTOR_PRESETS,
        LANGUAGE_MODEL_PRESETS,
        PRESETS,
        extractor_preset,
        language_model_preset,
        preset,
    )
except ModuleNotFoundError as error:
    raise without_torch(error, "`pyramidions.models`") from None

__all__ = [
    "EXTRACTOR_PRESETS",
    "LANGUAGE_MODEL_PRESETS",
    "PRESETS",
    "ExtractorConfig",
    "LanguageModelConfig",
    "PyramidionConfig",
    "build",
    "build_extractor",
    "build_language_model",
    "extractor_preset",
    "language_model_preset",
    "preset",
]
