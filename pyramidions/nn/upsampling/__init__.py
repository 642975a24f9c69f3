"""Upsampling, one kind per file; importing this package fills the registry."""

from pyramidions.nn.upsampling.core import UPSAMPLING, Upsampler
from pyramidions.nn.upsampling.repeat import RepeatUpsampler

__all__ = ["UPSAMPLING", "RepeatUpsampler", "Upsampler"]
