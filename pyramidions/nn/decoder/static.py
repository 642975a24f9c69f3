"""Cached steps whose tensors all stay in their places, as CUDA graphs want them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from pyramidions.nn.attention.state import KeysValues
from pyramidions.nn.sublayer import CapturableState, Carried, LayerContext

#: Steps that the states must have room for, so that recording one pays.
WORTH = 16
#: Runs a computation, and returns what runs it again on the same tensors.
Record = Callable[[Callable[[], None]], Callable[[], None]]


def as_cuda_graph(compute: Callable[[], None]) -> Callable[[], None]:
    """Record a computation on a GPU, once it has run on a stream beside, as torch.cuda.graph wants it."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        compute()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        compute()
    return graph.replay


class StaticStep:
    """A step of one new position of each hypothesis, recorded for the tensors that its states have now.

    Self-attention reads all the room that there is for keys, under a mask of what is not written yet, and a tensor says
    where new keys go. So steps differ in numbers alone.
    """

    def __init__(
        self,
        step: Callable[[Tensor, LayerContext], Tensor],
        x: Tensor,
        hypotheses: int,
        parts: Sequence[CapturableState],
        record: Record,
    ) -> None:
        self._step, self._parts, self._record = step, parts, record
        self._held = [part.held(0) or [] for part in parts]
        for part, held in zip(parts, self._held, strict=True):
            if isinstance(part, KeysValues):
                for room in held:
                    # A mask does not hide what is no number.
                    room[:, :, part.length :] = 0.0
            elif isinstance(part, Carried):
                held[:] = [torch.empty_like(each) for each in held]
        self._x, self._new = torch.empty_like(x), torch.arange(x.size(1), device=x.device)
        self._at, self._hypotheses = torch.empty_like(self._new), hypotheses
        self._blocked = x.new_full((len(x), 1, x.size(1), room_of(parts)), -torch.inf)
        self._replay: Callable[[], None] | None = None

    def __call__(self, x: Tensor, blocked: Tensor | None, written: int) -> Tensor:
        """Compute the step of ``x`` (B, W, D) behind so much that is ``written`` of a document; see `LayerContext`."""
        end = written + x.size(1)
        self._x.copy_(x)
        torch.add(self._new, written, out=self._at)
        if blocked is None:
            self._blocked[..., :end].zero_()
        else:
            self._blocked[..., :end].copy_(blocked)
        for part, held in zip(self._parts, self._held, strict=True):
            if isinstance(part, Carried) and part.value is not None:
                held[0].copy_(part.value)
        if self._replay is None:
            try:
                self._replay = self._record(self._compute)
            finally:
                for part, held in zip(self._parts, self._held, strict=True):
                    part.hold(held, None)
        self._replay()
        renewed = iter(self._renewed)
        for part in self._parts:
            part.stepped(renewed, x.size(1))
        return self._y.clone()

    def _compute(self) -> None:
        for part, held in zip(self._parts, self._held, strict=True):
            part.hold(held, self._put)
        self._y = self._step(self._x, LayerContext(self._blocked, hypotheses=self._hypotheses))
        self._renewed = [each for part in self._parts for each in part.renewed()]

    def _put(self, room: Tensor, new: Tensor) -> Tensor:
        return room.index_copy_(2, self._at, new)


def room_of(parts: Sequence[CapturableState]) -> int:
    """Return for how many positions of a document there is room; 0 where nothing keeps keys."""
    return next((held[0].size(2) for part in parts if isinstance(part, KeysValues) and (held := part.held(0))), 0)


def place_of(x: Tensor, parts: Sequence[CapturableState]) -> tuple[Any, ...]:
    """Return what a step must have in common with a recorded one: shapes, and where its tensors lie."""
    held = [each for part in parts if not isinstance(part, Carried) for each in part.held(0) or []]
    return x.shape, x.dtype, x.device, *((each.data_ptr(), each.shape) for each in held)
