"""One function over many items, in several processes and in order."""

import multiprocessing
import os
import pickle
import resource
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar, cast

from pyramidions.base.errors import UserError
from pyramidions.base.notes import listening, note


class KilledError(UserError):
    """One of our processes was killed, or ended by itself; the work done before is kept."""

    exit_code: int | None = None  # of the process: negative for a signal; None if unknown


# What a terminal or SLURM sends to every process of a group.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
Item = TypeVar("Item")
Result = TypeVar("Result")


def ordered_map(function: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Apply a function to items, in worker processes, and yield the results in the items' order.

    At most four items per worker are in progress, so memory does not grow with the number of items, which are read
    lazily. Each process gets the function once, with the arguments of a `partial`; one worker is this process. A
    KilledError says that a worker was killed.
    """
    if workers <= 1:
        yield from map(function, items)
        return
    source = iter(items)
    pool = ProcessPoolExecutor(workers, initializer=start_worker, initargs=(os.getpid(), function))
    try:
        pending: deque[Future[Result]] = deque()
        for item in islice(source, 1):
            # The first item starts the workers. One that receives a signal before it is set up would take a lock of the
            # pool with it, for which the others wait forever; a parent that stops between starting them and the thread
            # that feeds them would wait for them forever.
            with _signals_deferred():
                pending.append(pool.submit(_apply, item))
        for item in islice(source, 4 * workers - 1):
            pending.append(pool.submit(_apply, item))
        while pending:
            result = pending.popleft().result()
            for item in islice(source, 1):
                pending.append(pool.submit(_apply, item))
            yield result
    except BrokenProcessPool:
        raise KilledError("A worker process was killed, perhaps for lack of memory; give fewer --workers.") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _signals_deferred() -> Iterator[None]:
    """Handle signals afterwards; processes that are started meanwhile are born with signals blocked."""
    came: list[int] = []
    handlers: dict[signal.Signals, Callable[[int, FrameType | None], Any]] = {}
    # A mask is that of one thread. Where there are others, the system hands them the signal, and Python runs the
    # handler in the main thread all the same.
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            if callable(handler := signal.getsignal(number)):
                handlers[number] = handler
                signal.signal(number, lambda number, _: came.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for waiting in came:
            signal.raise_signal(waiting)


# What this process, a worker, does to items, and the folder that it removes if its parent is gone.
_work: list[Callable[[Any], Any]] = []
_left: list[Path] = []


def _apply(item: Any) -> Any:
    (function,) = _work
    return function(item)


def start_worker(parent: int, *function: Callable[[Any], Any]) -> None:
    """Set up a worker process, which ignores interrupts and ends with its parent, and does a function to items."""
    _work[:] = function
    # An interrupt from the keyboard reaches every process; only the parent handles it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The pool ends its workers by SIGTERM, so they must not inherit a handler of the parent.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: a killed parent cannot tell its workers."""
    while os.getppid() == parent:
        time.sleep(1)
    _end_alone()


def _end_alone() -> None:
    """End this process, whose parent is gone, with what the parent would have removed."""
    for folder in _left:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


class Worker(Generic[Item, Result]):
    """A forked process that applies a function to one item after another; ending it ends the work on an item.

    It starts with the first item, and anew with the next one after it ended. Items and results can be pickled. What the
    function raises is raised here, and its notes (`base.notes.note`) come with its result; those of a process that was
    killed are lost. Limits are in seconds of processor time, and in bytes beyond those of this process.

    One that ``stays`` may start processes itself, and leaves files and connections to this process; `close` must be
    called before this process ends. If this process is killed, it removes the folder ``left``.
    """

    def __init__(
        self,
        function: Callable[[Item], Result],
        *,
        seconds: int | None = None,
        memory: int | None = None,
        stays: bool = False,
        left: Path | None = None,
    ) -> None:
        self._function, self._stays, self._left, self._limits = function, stays, left, (seconds, memory)
        self._process: Any = None

    def give(self, item: Item) -> None:
        """Hand over an item; the result of the one before was taken."""
        if self._process is None or not self._process.is_alive():
            self._start()
        self._connection.send(item)

    def has_result(self, wait: float | None = 0.0) -> bool:
        """Wait for a result for so many seconds, for ever if None, and return whether it has come."""
        return self._connection.poll(wait)

    def result(self) -> Result:
        """Wait for the result and return it.

        A KilledError says that the process was killed, as one is that takes more than it may, or ended by itself; it
        may also raise a MemoryError.
        """
        try:
            result, error, notes = self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            raise _killed(self._process.exitcode) from None
        for message in notes:
            note(message)
        if error is not None:
            raise error
        return cast(Result, result)

    def close(self) -> None:
        """End the process at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _start(self) -> None:
        self.close()
        if multiprocessing.current_process().daemon:
            raise UserError(
                "A daemon process, such as a worker of multiprocessing.Pool, can start no other, which this needs: use "
                "concurrent.futures.ProcessPoolExecutor."
            )
        context = multiprocessing.get_context("fork")
        self._connection, theirs = context.Pipe()
        arguments = (self._function, theirs, os.getpid(), self._stays, self._left, *self._limits)
        self._process = context.Process(target=_work_on_items, args=arguments, daemon=not self._stays)
        with theirs:
            self._process.start()


def in_process(
    work: Callable[[], Result],
    *,
    seconds: int | None = None,
    memory: int | None = None,
    waiting: Callable[[], object] = lambda: None,
    interval: float | None = None,
) -> Result:
    """Call a function in a `Worker`, which is killed when we are interrupted: C++ code ignores interrupts.

    Every ``interval`` seconds ``waiting`` is called. Limits and errors are those of the worker.
    """
    worker = Worker[None, Result](lambda _: work(), seconds=seconds, memory=memory)
    try:
        worker.give(None)
        while not worker.has_result(interval):
            waiting()
        return worker.result()
    finally:
        worker.close()


def in_limits(work: Callable[[], Result], name: str, seconds: int, memory: int) -> Result:
    """Read a file that nobody vouches for, as `in_process` does; a UserError says that it takes too much or crashes."""
    try:
        return in_process(work, seconds=seconds, memory=memory)
    except (KilledError, MemoryError) as error:
        # C++ aborts where it gets no memory.
        ends = (-signal.SIGKILL, -signal.SIGXCPU, -signal.SIGABRT)
        if isinstance(error, KilledError) and error.exit_code not in ends:
            raise UserError(f"{name} cannot be read. {error}") from None
        raise UserError(
            f"{name} must take at most {seconds:,} s of processor time and {memory // 2**20:,} MiB of memory to read, "
            "for its size, but takes more."
        ) from None


def _killed(exit_code: int) -> KilledError:
    how = f"was ended by {signal.Signals(-exit_code).name}" if exit_code < 0 else f"ended with exit status {exit_code}"
    if exit_code == -signal.SIGKILL:
        how = "was killed, perhaps for lack of memory"
    error = KilledError(f"The process at work {how}.")
    error.exit_code = exit_code
    return error


def _work_on_items(
    function: Callable[[Any], object],
    connection: Any,
    parent: int,
    stays: bool,
    left: Path | None,
    seconds: int | None,
    memory: int | None,
) -> None:
    _left[:] = filter(None, [left])
    start_worker(parent)
    if stays:
        _let_go_of_files(connection.fileno())
    if seconds is not None:
        _set_limit(resource.RLIMIT_CORE, 0)
        _set_limit(resource.RLIMIT_CPU, seconds)
    if memory is not None and (pages := Path("/proc/self/statm")).exists():
        limit = memory + int(pages.read_text().split()[0]) * resource.getpagesize()
        _set_limit(resource.RLIMIT_AS, limit)
    try:
        while True:
            connection.send_bytes(_answer(partial(function, connection.recv())))
    except EOFError:
        _end_alone()
    except MemoryError:
        signal.raise_signal(signal.SIGKILL)


def _let_go_of_files(kept: int) -> None:
    """Leave files and connections to the parent: with a copy here, one that the parent closes would stay open.

    Their numbers name nothing from now on, so that the parent's objects, which may close them here, close nothing else.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in [int(each.name) for each in Path("/dev/fd").iterdir()]:
        if number not in (0, 1, 2, kept, nothing):
            os.dup2(nothing, number)


def _set_limit(kind: int, most: int) -> None:
    # Nobody may raise the limit that a shell or a cluster has set.
    _, hard = resource.getrlimit(kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))


def _answer(work: Callable[[], object]) -> bytes:
    """Pickle what a function returns, or the error that it or pickling raises, and its notes."""
    notes: list[str] = []
    try:
        with listening(notes.append):
            return pickle.dumps((work(), None, notes))
    except Exception as error:
        try:
            return pickle.dumps((None, error, notes))
        except (pickle.PicklingError, TypeError, AttributeError):
            return pickle.dumps((None, RuntimeError(repr(error)), notes))


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
