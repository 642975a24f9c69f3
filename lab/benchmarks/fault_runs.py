"""Runs a command to its end, or kills it and all that it has started."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PAUSE = 0.004  # seconds between two looks at a command that runs


@dataclass(frozen=True)
class Ran:
    """What became of a command.

    Attributes:
        status: its exit status; a negative one is that of the signal that ended it.
        output: what it printed.
        began: seconds until it began to write; None if it never did.
        took: seconds until its end.
    """

    status: int
    output: str
    began: float | None
    took: float

    @property
    def killed(self) -> bool:
        """Whether it was killed, and had not ended before."""
        return self.status == -signal.SIGKILL


def start(command: list[str], folder: Path | None = None) -> subprocess.Popen[str]:
    """Start a command of this environment, with one thread, in a process group of its own.

    Args:
        command: its words; the first is the name of a program.
        folder: in which it runs; this process's without one.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        [str(Path(sys.executable).parent / command[0]), *command[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )


def run(
    command: list[str], *, writes: Path | None = None, begins: str | None = None, kill_after: float | None = None
) -> Ran:
    """Run a command.

    Args:
        command: its words.
        writes: an empty folder: that something lies there shows that it has begun to write.
        begins: part of a line that it prints, which shows this instead.
        kill_after: seconds from its start to SIGKILL, or from its beginning to write where ``begins`` is given.
    """
    process, lines = start(command), list[str]()
    shown = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if begins is not None and begins in line:
                shown.set()

    reader = threading.Thread(target=read)
    reader.start()
    started, began = time.monotonic(), None
    try:
        while process.poll() is None:
            now = time.monotonic() - started
            if began is None and (shown.is_set() if begins is not None else writes is not None and _any(writes)):
                began = now
            since = began if begins is not None else 0.0
            if kill_after is not None and since is not None and now - since >= kill_after:
                _kill(process)
                break
            time.sleep(PAUSE)
    except BaseException:
        _kill(process)
        raise
    status = process.wait()
    took = time.monotonic() - started
    reader.join()
    return Ran(status, "".join(lines), began, took)


def _kill(process: subprocess.Popen[str]) -> None:
    # It may have ended in between.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _any(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return next(entries, None) is not None
