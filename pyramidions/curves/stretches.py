"""The training curve, put together from lines that are means over stretches of updates."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

# Logs have three digits: from a mean over a whole line, that over less than this share of it comes out too roughly.
_LEAST_SHARE = 0.05
_UNTIL = attrgetter("until")


class Stretch(NamedTuple):
    """The mean of a measure over the updates after ``since``, up to ``until``.

    Attributes:
        since: the last update before the stretch.
        until: its last update.
        value: the mean.
        weight: of one update in it, on average.
    """

    since: int
    until: int
    value: float
    weight: float


def training_curve(lines: Iterable[Stretch]) -> list[Stretch]:
    """Return the finest curve that lines give, which ends where the last of them does.

    fairseq logs means over intervals of so many updates, and over epochs. Where two lines tell of the same updates,
    the one over fewer is taken. A longer one that ends later adds the mean over the updates that remain.

    Args:
        lines: of one measure, in any order.

    Returns:
        Stretches by their last update, each of another.
    """
    taken: list[Stretch] = []
    for line in sorted(lines, key=lambda line: (line.until - line.since, line.since)):
        first = bisect_right(taken, line.since, key=_UNTIL)
        last = bisect_left(taken, line.until, key=_UNTIL)
        if last < len(taken) and taken[last].since < line.until:
            continue
        rest = _rest(line, taken[first:last]) if first < last else line
        if rest is not None:
            taken.insert(last, rest)
    return taken


def _rest(line: Stretch, finer: list[Stretch]) -> Stretch | None:
    """Return the mean over the end of a line, given finer ones before it; None where the log's digits are too few."""
    updates = line.until - line.since
    since = min(finer[-1].until, line.until - max(1, round(_LEAST_SHARE * updates)))
    left, weight, total = updates, updates * line.weight, updates * line.weight * line.value
    covered = line.since
    for other in finer:
        shared = max(0, min(other.until, since) - max(other.since, covered))
        covered = max(covered, other.until)
        left -= shared
        weight -= shared * other.weight
        total -= shared * other.weight * other.value
    return Stretch(since, line.until, total / weight, weight / left) if weight > 0 else None
