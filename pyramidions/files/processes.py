"""Starts other programs, shows them as one would type them, and stops them."""

import contextlib
import ctypes
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

#: What fairseq takes as --user-dir; `pyramidions user-dir` prints it.
USER_DIR = str(Path(__file__).parents[1])
_GRACE = 20.0  # seconds that a process has to end after it was asked to
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


def program(name: str, *arguments: object) -> tuple[str, ...]:
    """Return a command with the path of its program, beside the running Python."""
    beside = Path(sys.executable).with_name(name)
    return (str(beside) if beside.is_file() else name, *map(str, arguments))


def _quoted(word: str) -> str:
    # People write "dense(activation='gelu')"; shlex ends and begins its quotes around each quote within.
    return f'"{word}"' if "'" in word and not set(word) & set('"$`\\!') else shlex.quote(word)


def as_typed(words: Sequence[str], width: int = 100) -> str:
    """Return a command as one would type it, on lines of about `width` characters; a flag stays with its values."""
    quoted = ('"$(pyramidions user-dir)"' if word == USER_DIR else _quoted(word) for word in words[1:])
    lines = [Path(words[0]).name]
    for part in re.split(" (?=--)", " ".join(quoted)):
        if len(lines[-1]) + len(part) > width + 3:
            lines.append("   ")
        lines[-1] += f" {part}"
    return " \\\n".join(lines)


def start_process(
    words: Sequence[str],
    output: IO[bytes],
    environment: Mapping[str, str],
    errors: IO[bytes] | int = subprocess.STDOUT,
    folder: Path | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a program in a process group of its own, so that whatever it starts can be stopped with it.

    The environment is all of its variables. Linux stops it when this process is gone, even when it was killed.
    """
    return subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        env=environment,
        cwd=folder,
        start_new_session=True,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,
    )


def _end_with_parent() -> None:
    # A shell may have us ignore it, and a child inherits that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGTERM)


def stop_processes(
    processes: "Sequence[subprocess.Popen[bytes]]", first: int = signal.SIGTERM, grace: float = _GRACE
) -> None:
    """Stop what still runs, and all that it started: by a signal, and after ``grace`` seconds by SIGKILL.

    Each leads a group of its own. SIGKILL comes at once when we are interrupted.
    """
    deadline = time.monotonic() + grace
    try:
        _signal_all(processes, first)
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        _signal_all(processes, signal.SIGKILL)
        for process in processes:
            process.wait()


def _signal_all(processes: "Sequence[subprocess.Popen[bytes]]", number: int) -> None:
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
