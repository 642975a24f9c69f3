"""Seconds of a training step and of decoding, as table 10 of Pietruszka et al. 2022 has them; needs torch only."""

from pyramidions.measure.timing.contender import add_gradients
from pyramidions.measure.timing.plan import Plan
from pyramidions.measure.timing.stopwatch import Timed, clock
from pyramidions.measure.timing.turns import report, time_models

__all__ = ["Plan", "Timed", "add_gradients", "clock", "report", "time_models"]
