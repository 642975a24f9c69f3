"""Configs, presets and builders, without fairseq; it sees `pyramidion` and `pyramidion_extractor`."""

from pyramidions.models.builder import build, build_extractor
from pyramidions.models.config import ExtractorConfig, PyramidionConfig
from pyramidions.models.presets import EXTRACTOR_PRESETS, PRESETS, extractor_preset, preset

__all__ = [
    "EXTRACTOR_PRESETS",
    "PRESETS",
    "ExtractorConfig",
    "PyramidionConfig",
    "build",
    "build_extractor",
    "extractor_preset",
    "preset",
]
