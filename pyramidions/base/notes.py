"""What a user should know of a document: said on standard error, or to whoever listens."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], object] | None] = ContextVar("listener", default=None)


def tell(sentence: str) -> None:
    """Say a sentence to the innermost `listening` of this thread; without one, on standard error."""
    listen = _listener.get()
    if listen is None:
        print(sentence, file=sys.stderr, flush=True)
    else:
        listen(sentence)


@contextmanager
def listening(listen: Callable[[str], object]) -> Iterator[None]:
    """Let a function hear what is told meanwhile in this thread, and in the processes of `in_process`."""
    before = _listener.set(listen)
    try:
        yield
    finally:
        _listener.reset(before)
