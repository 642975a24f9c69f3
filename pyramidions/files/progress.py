"""Progress bars on standard error."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeVar, cast

from tqdm import tqdm

from pyramidions.files.parallel import KilledError, start_worker

Result = TypeVar("Result")


#: Seconds without a bar where standard error is no terminal: work that takes less leaves none in a log file.
PATIENCE = 5.0


def progress_bar(
    description: str, total: int | None, unit: str, initial: int = 0, patience: float | None = None
) -> Any:
    """A bar with rate and time left.

    Args:
        description: what is being done.
        total: number of units of the whole work; None if it is not known.
        unit: `B` for bytes, shown with prefixes, or the name of what is counted.
        initial: units done before; rate and time left ignore them.
        patience: seconds without a bar where standard error is no terminal; `PATIENCE` if None.
    """
    return tqdm(
        desc=description,
        total=total,
        initial=initial,
        unit=unit if unit == "B" else f" {unit}",
        unit_scale=unit == "B",
        # A log file gets a line every 20 seconds instead of ten a second.
        mininterval=0.2 if sys.stderr.isatty() else 20.0,
        delay=0.0 if sys.stderr.isatty() else PATIENCE if patience is None else patience,
        dynamic_ncols=True,
    )


def note(message: str) -> None:
    """Write one line above any progress bar."""
    tqdm.write(message, file=sys.stderr)


def with_elapsed(description: str, work: Callable[[], Result]) -> Result:
    """Call a function that reports no progress, and show the elapsed seconds.

    The function runs in a forked process, which is killed when this one is interrupted: C++ code ignores interrupts.

    Args:
        description: what is being done.
        work: returns something picklable.

    Returns:
        What `work` returns; what it raises is raised here.

    Raises:
        KilledError: the process was killed.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work_and_send, args=(work, sender, os.getpid()), daemon=True)
    with tqdm(desc=description, bar_format="{desc}: {elapsed_s:.0f} s", dynamic_ncols=True) as bar, receiver:
        process.start()
        sender.close()
        try:
            while not receiver.poll(1.0 if sys.stderr.isatty() else 5.0):
                bar.refresh()
            result, error = receiver.recv()
        except EOFError:
            raise KilledError("The process at work was killed, perhaps for lack of memory.") from None
        finally:
            process.kill()
            process.join()
    if error is not None:
        raise error
    return cast(Result, result)


def _work_and_send(work: Callable[[], object], sender: Connection, parent: int) -> None:
    start_worker(parent)
    try:
        answer: tuple[object, Exception | None] = work(), None
    except Exception as error:
        answer = None, error
    sender.send(answer)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 document`, `1,000 documents`, `2 summaries`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun.removesuffix('y')}ies" if noun.endswith("ry") else f"{number:,} {noun}s"


def listed(items: Sequence[object], most: int) -> str:
    """Return items with commas between them: the first ``most``, and how many more there are."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return f"{', '.join(map(str, items[:most]))}{more}"
