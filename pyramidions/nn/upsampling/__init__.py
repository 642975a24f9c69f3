"""Upsampling, one kind per file; importing this package fills the registry."""

from pyramidions.nn.upsampling.core import UPSAMPLING as UPSAMPLING
from pyramidions.nn.upsampling.core import RepeatUpsampler as RepeatUpsampler
from pyramidions.nn.upsampling.core import Upsampler as Upsampler
from pyramidions.nn.upsampling.top_down import TopDownUpsampler as TopDownUpsampler
