"""Notes to the user, above any progress bar or to whoever listens."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


def note(message: str) -> None:
    """Hand one line to the innermost `listening` of this thread; without one, write it to standard error."""
    listen = _listener.get()
    if listen is None:
        from tqdm import tqdm

        # Above any progress bar.
        tqdm.write(message, file=sys.stderr)
    else:
        listen(message)


@contextmanager
def listening(listen: Callable[[str], object]) -> Iterator[None]:
    """Hand the notes of this thread, and of its processes of `in_process`, to a function meanwhile."""
    before = _listener.set(listen)
    try:
        yield
    finally:
        _listener.reset(before)
