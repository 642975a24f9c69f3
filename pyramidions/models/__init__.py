"""Configs, presets and the builder, without fairseq; `pyramidion` is the face that fairseq sees."""

from pyramidions.models.builder import build, preset
from pyramidions.models.config import PyramidionConfig
from pyramidions.models.presets import PRESETS

__all__ = ["PRESETS", "PyramidionConfig", "build", "preset"]
