"""Decisions of a forward pass, which its recomputation in the backward pass repeats."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from types import TracebackType

import torch
from torch import Tensor

_Make = Callable[[], Tensor]
#: how the present pass decides: given what would compute a tensor, and the bound of its numbers
_PRESENT: ContextVar[Callable[[_Make, int], Tensor] | None] = ContextVar("present", default=None)
#: the types in which decisions are kept, the smallest first
_TYPES = (torch.uint8, torch.int16, torch.int32, torch.int64)


def replayed(make: _Make, below: int) -> Tensor:
    """Return what ``make`` computes, numbers from 0 to ``below`` - 1; in a recomputation, those of the forward pass.

    Rounding may differ between the two passes, and a decision must not (Jaszczur et al. 2021, section 4.2). Random
    numbers are drawn outside of ``make``, so that both passes draw the same number of them.
    """
    decide = _PRESENT.get()
    if decide is None and not torch.is_grad_enabled():
        return make()
    with torch.no_grad():
        return make() if decide is None else decide(make, below)


class Decisions:
    """What a pass decided, in order, in the smallest type that holds it."""

    def __init__(self) -> None:
        self._made: list[Tensor] = []

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        return sum(made.nbytes for made in self._made)

    def recording(self) -> AbstractContextManager[None]:
        """Return the context of the forward pass."""
        return _Within(lambda: self._record)

    def replaying(self) -> AbstractContextManager[None]:
        """Return the context of the recomputation, which may be repeated."""
        return _Within(lambda: _Replay(iter(self._made)))

    def _record(self, make: _Make, below: int) -> Tensor:
        made = make()
        smallest = next(kind for kind in _TYPES if below - 1 <= torch.iinfo(kind).max)
        self._made.append(made.to(smallest))
        return made


def forward_and_recomputation() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return the contexts of a checkpoint (its ``context_fn``): the recomputation repeats the decisions."""
    decisions = Decisions()
    return decisions.recording(), decisions.replaying()


class _Replay:
    """Answers with what was decided."""

    def __init__(self, made: Iterator[Tensor]) -> None:
        self._made = made

    def __call__(self, make: _Make, below: int) -> Tensor:
        made = next(self._made, None)
        if made is None:
            raise RuntimeError("The recomputation must not decide more than the forward pass did.")
        return made.long()


class _Within(AbstractContextManager[None]):
    """A context in which a pass decides in its own way; it may be entered again."""

    def __init__(self, begin: Callable[[], Callable[[_Make, int], Tensor]]) -> None:
        self._begin = begin
        self._before: list[Token[Callable[[_Make, int], Tensor] | None]] = []

    def __enter__(self) -> None:
        self._before.append(_PRESENT.set(self._begin()))

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _PRESENT.reset(self._before.pop())
