"""One function over many items, in several processes and in order."""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TypeVar

from pyramidions.errors import UserError


class KilledError(UserError):
    """Something outside ended a process of ours: no mistake, so what was done until then is good."""


Item = TypeVar("Item")
Result = TypeVar("Result")


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: int,
    *,
    initializer: Callable[..., None] | None = None,
    initargs: tuple[object, ...] = (),
) -> Iterator[Result]:
    """Apply a function to items, in worker processes, and yield the results in the items' order.

    At most four items a worker are under way, so memory does not grow with the number of items.

    Args:
        function: picklable, called with one item.
        items: any iterable; read in this process, lazily.
        workers: number of processes; 1 calls the function in this process.
        initializer: called once in each process before the first item.
        initargs: what it is called with.

    Yields:
        One result an item.

    Raises:
        KilledError: a worker was killed.
    """
    if workers <= 1:
        if initializer is not None:
            initializer(*initargs)
        yield from map(function, items)
        return
    source = iter(items)
    pool = ProcessPoolExecutor(workers, initializer=start_worker, initargs=(os.getpid(), initializer, initargs))
    try:
        pending: deque[Future[Result]] = deque()
        for item in islice(source, 4 * workers):
            pending.append(pool.submit(function, item))
        while pending:
            result = pending.popleft().result()
            for item in islice(source, 1):
                pending.append(pool.submit(function, item))
            yield result
    except BrokenProcessPool:
        raise KilledError("A worker process was killed, perhaps for lack of memory; give fewer --workers.") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def start_worker(
    parent: int, initializer: Callable[..., None] | None = None, initargs: tuple[object, ...] = ()
) -> None:
    """Let this process end with its parent, and leave interrupts to it; then call the initializer."""
    # An interrupt from the keyboard reaches every process; the parent alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The parent may have a handler, which no worker must inherit: the pool ends its workers in this way.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if initializer is not None:
        initializer(*initargs)


def _end_with(parent: int) -> None:
    """Leave no worker behind when the parent is killed, which gives it no chance to say so."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def available_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Cut an iterable into lists of `size` items, the last one shorter."""
    source = iter(items)
    while chunk := list(islice(source, size)):
        yield chunk
