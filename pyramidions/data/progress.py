"""Progress bars on standard error."""

import sys
from typing import Any

from tqdm import tqdm


def progress_bar(description: str, total: int, unit: str) -> Any:
    """A bar with rate and time left.

    Args:
        description: what is being done.
        total: how many units make it whole.
        unit: `B` for bytes, shown with prefixes, or the name of what is counted.
    """
    return tqdm(
        desc=description,
        total=total,
        unit=unit if unit == "B" else f" {unit}",
        unit_scale=unit == "B",
        # A log file gets a line now and then instead of ten a second.
        mininterval=0.2 if sys.stderr.isatty() else 20.0,
        dynamic_ncols=True,
    )


def note(message: str) -> None:
    """Say in one line what begins now, above any bar."""
    tqdm.write(message, file=sys.stderr)
