"""Runs a command to its end, and says in one sentence why it failed."""

import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.files.processes import as_typed, start_process, stop_processes
from pyramidions.files.progress import note

_ERROR = re.compile(r"(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt|Exit)|error)\b:? ?(.*)")
_TAIL = 1 << 16  # bytes of a log in which the reason is looked for
_PAUSE, _DAY = 0.2, 86_400.0  # seconds


def run_child(
    words: Sequence[str],
    log: Path,
    *,
    out: Path | None = None,
    folder: Path | None = None,
    tick: Callable[[], None] = lambda: None,
    saves: bool = False,
) -> None:
    """Run a command; stop it, and all that it started, when we are stopped.

    Args:
        words: the program and its arguments.
        log: gets its output, after that of earlier runs.
        out: gets its standard output instead.
        folder: that it runs in.
        tick: called again and again while it runs.
        saves: interrupted, it finishes and saves a piece of its work, for which we wait.

    Raises:
        UserError: it failed.
    """
    # We decide what runs where: fairseq would take the whole of a SLURM allocation.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    environment["PYTHONWARNINGS"] = "ignore"
    name = Path(words[0]).name
    with log.open("ab") as errors, (out or log).open("ab" if out is None else "wb") as output:
        errors.write(f"$ {as_typed(words)}\n".encode())
        errors.flush()
        begin = errors.tell()
        try:
            process = start_process(words, output, environment, errors=errors, folder=folder, ends_with_us=True)
        except OSError:
            raise UserError(f"{name} is not installed: scripts/setup.sh train brings what training needs.") from None
        try:
            while process.poll() is None:
                tick()
                time.sleep(_PAUSE)
            tick()
        finally:
            if saves and process.poll() is None:
                note(
                    "Stopping: the update, or the validation, that runs is finished and saved. Ctrl-C ends it at once."
                )
                stop_processes([process], signal.SIGINT, _DAY)
            else:
                stop_processes([process])
    if process.returncode:
        raise UserError(
            f"{name} failed: {_reason(log, begin, name, process.returncode)}; all of its output is in {log}."
        )


def _reason(log: Path, begin: int, name: str, code: int) -> str:
    """Return the last error of a log in words."""
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - _TAIL))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    if code < 0:
        return f"signal {-code} killed it, perhaps for lack of memory"
    for line in reversed(lines):
        if (match := _ERROR.match(line.removeprefix(f"{name}: "))) and match[2]:
            told = match[2] if match[1] in ("UserError", "Error", "error") else f"{match[1]}: {match[2]}"
            return told.rstrip(".")
    return lines[-1].rstrip(".") if lines else f"it ended with status {code}"
