"""Seconds and memory of a piece of work."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from pyramidions.base.errors import UserError


class Timed(NamedTuple):
    """What one thing took, turn by turn.

    Attributes:
        seconds: of each turn after the warm-up.
        peak_bytes: the most GPU memory that tensors took in a turn, without those of other configs; None on a CPU.
    """

    seconds: list[float]
    peak_bytes: int | None

    @property
    def mean(self) -> float:
        """Mean, in seconds."""
        return statistics.mean(self.seconds)

    @property
    def deviation(self) -> float:
        """Standard deviation of a sample, in seconds."""
        return statistics.stdev(self.seconds)

    @property
    def median(self) -> float:
        """Median, in seconds."""
        return statistics.median(self.seconds)

    def ratio_to(self, other: "Timed") -> dict[str, float]:
        """Return the ratio of medians, and the lowest and highest ratio of two neighbouring turns."""
        ratios = [mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=True)]
        return {"medians": self.median / other.median, "low": min(ratios), "high": max(ratios)}

    def as_json(self, first: "Timed") -> dict[str, Any]:
        """Return all figures as plain values, with the ratio to another thing."""
        return {
            "seconds": self.seconds,
            "mean": self.mean,
            "standard_deviation": self.deviation,
            "median": self.median,
            "ratio_to_first": self.ratio_to(first),
            "peak_bytes": self.peak_bytes,
        }


def clock(work: Callable[[], object], device: str) -> tuple[float, int | None]:
    """Do something on a device that is idle before and after; return its seconds and, of a GPU, the peak in bytes."""
    if device == "cpu":
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin, None
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000, torch.cuda.max_memory_allocated()


@contextmanager
def naming_what_took_memory(what: str) -> Iterator[None]:
    """Raise a UserError that names the work where memory runs out."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        # torch has a class for a GPU's memory only.
        if isinstance(error, MemoryError | torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error):
            raise UserError(f"Memory ran out in {what}.") from None
        raise
