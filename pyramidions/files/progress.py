"""Progress bars on standard error."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from tqdm import tqdm

from pyramidions.files.parallel import in_process

Result = TypeVar("Result")


#: Seconds without a bar where standard error is no terminal: work that takes less leaves none in a log file.
PATIENCE = 60.0


def progress_bar(
    description: str, total: int | None, unit: str, initial: int = 0, items: Iterable[Any] | None = None
) -> Any:
    """A bar with rate and time left, which ignore the ``initial`` units; `B` is shown with prefixes.

    It yields the ``items``, if it has any, and counts them.
    """
    return tqdm(
        items,
        desc=description,
        total=total,
        initial=initial,
        unit=unit if unit == "B" else f" {unit}",
        unit_scale=unit == "B",
        # A log file gets a line every five minutes instead of five a second.
        mininterval=0.2 if sys.stderr.isatty() else 300.0,
        delay=0.0 if sys.stderr.isatty() else PATIENCE,
        dynamic_ncols=True,
    )


def with_elapsed(description: str, work: Callable[[], Result]) -> Result:
    """Call a function that reports no progress, `in_process`, and show the elapsed seconds under a description."""
    quiet = not sys.stderr.isatty()
    with tqdm(desc=description, bar_format="{desc}: {elapsed_s:.0f} s", dynamic_ncols=True, disable=quiet) as bar:
        return in_process(work, waiting=bar.refresh, interval=1.0)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 document`, `1,000 documents`, `2 summaries`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun.removesuffix('y')}ies" if noun.endswith("ry") else f"{number:,} {noun}s"


def listed(items: Sequence[object], most: int) -> str:
    """Return items with commas between them: the first ``most``, and how many more there are."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return f"{', '.join(map(str, items[:most]))}{more}"
