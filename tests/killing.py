"""Processes that are killed somewhere in their work."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from itertools import count
from typing import Any


def die(*_: Any, **__: Any) -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_call(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which kills its process when it is called for the n-th time, counted from 1."""
    calls = count(1)
    return lambda *given, **named: die() if next(calls) == number else function(*given, **named)


def run_killed(*functions: Callable[[], object]) -> None:
    """Run functions in a process that one of them kills."""
    process = multiprocessing.get_context("fork").Process(target=lambda: [function() for function in functions])
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
