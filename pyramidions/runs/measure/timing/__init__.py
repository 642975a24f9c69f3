"""Seconds of a training step and of decoding, as table 10 of Pietruszka et al. 2022 has them; needs torch only."""

from pyramidions.runs.measure.timing.contender import add_gradients
from pyramidions.runs.measure.timing.plan import Plan
from pyramidions.runs.measure.timing.stopwatch import Timed, clock
from pyramidions.runs.measure.timing.turns import report, time_models

__all__ = ["Plan", "Timed", "add_gradients", "clock", "report", "time_models"]
