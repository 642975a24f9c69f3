"""What a metric is."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple


class Metric(NamedTuple):
    """A way to score one summary against its reference.

    Attributes:
        labels: headings by the names of its figures; logs and files have the names.
        score: takes the summary and the reference; returns a figure for each label, 0 to 100, more is better.
        signature: says all that decides over the figures: implementation, version and settings.
    """

    labels: Mapping[str, str]
    score: Callable[[str, str], Sequence[float]]
    signature: Callable[[], str]
