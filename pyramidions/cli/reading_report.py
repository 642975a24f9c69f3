"""What commands that read documents report on standard error."""

import os
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import click

from pyramidions.base.errors import UserError
from pyramidions.files.bounded import printable
from pyramidions.files.progress import counted, listed, progress_bar

PATIENCE = 5.0  # seconds without a progress bar
NAMED = 20  # skipped files that are named


class ReadingReport:
    """Reports what cannot be read, and shows a progress bar if the work takes longer than a few seconds."""

    def __init__(self, paths: list[Path], work: str) -> None:
        self.failed = False
        self._work = work
        self._total = sum(path.stat().st_size for path in paths if os.path.isfile(path))  # noqa: PTH113, never raises
        self.done = 0.0
        self._bar: Any = None
        self._closed = threading.Event()
        # A batch may take minutes without any progress being counted.
        threading.Thread(target=self._watch, daemon=True).start()

    def fail(self, error: UserError) -> None:
        """Report what cannot be read."""
        self.failed = True
        with self.bar_aside():
            # What a library says may have several lines.
            click.echo(f"Error: {' '.join(str(error).split())}", err=True)

    def note(self, message: str) -> None:
        with self.bar_aside():
            click.echo(message, err=True)

    def skip(self, paths: list[Path]) -> None:
        """Name the files in folders that are not read."""
        if paths:
            named = listed([printable(path) for path in paths], NAMED)
            click.echo(f"Skipped {counted(len(paths), 'file')}: {named}.", err=True)

    def add(self, size: float) -> None:
        """Count bytes of the files: half of each when its text is read, half when its summary is written."""
        self.done += size / 2
        if self._bar is not None:
            self._bar.update(round(self.done) - self._bar.n)

    def _watch(self) -> None:
        if not self._closed.wait(PATIENCE):
            self._bar = progress_bar(self._work, self._total, "B", round(self.done))
        while sys.stderr.isatty() and not self._closed.wait(1.0):
            self._bar.refresh()

    def bar_aside(self) -> AbstractContextManager[Any]:
        """Clear a terminal's progress bar while something else is written; a file would get the bar each time."""
        drawn = self._bar is not None and sys.stderr.isatty()
        return self._bar.external_write_mode() if drawn else nullcontext()

    def finish(self) -> None:
        """Count what could not be read as well."""
        self.add(2 * (self._total - self.done))

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._closed.set()
        if self._bar is not None:
            self._bar.close()
