"""Cached steps whose tensors all stay in their places, as CUDA graphs want them."""

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from warnings import warn

import torch
from torch import Tensor

from pyramidions.nn.attention.state import KeysValues
from pyramidions.nn.decoder.captured import States, is_plain
from pyramidions.nn.layer import Layer
from pyramidions.nn.stack import Stack
from pyramidions.nn.sublayer import CapturableState, Carried, LayerContext, parts_of

#: Steps that there is room for, at least, where one is recorded.
ROOM = 128
#: Runs a computation on a device, and returns what runs it again on the same tensors; RuntimeError if it cannot.
Record = Callable[[Callable[[], None], torch.device], Callable[[], None]]

_recording = threading.Lock()


def as_cuda_graph(compute: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Record a computation on a GPU, after it has run once on a side stream (torch.cuda.graph)."""
    if device.type != "cuda":
        raise RuntimeError(f"the device is {str(device)!r}")
    with _recording, torch.cuda.device(device):
        stream = _side_stream(device)
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            compute()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            compute()
    return graph.replay


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the one stream for recordings: cuBLAS keeps a workspace for each."""
    return torch.cuda.Stream(device)


class RecordedSteps:
    """The steps of one search, each replayed from a recording of the step for the same tensors.

    Steps are recorded under the conditions of `CapturedSteps`, and else computed as they are.
    """

    def __init__(self, record: Record) -> None:
        self._record: Record | None = record
        self._key: tuple[Any, ...] = ()
        self._latest: _StaticStep | None = None

    def step(self, stack: Stack, layers: Sequence[Layer], x: Tensor, context: LayerContext, states: States) -> Tensor:
        """Compute `Stack.step`, by a recording if it can be recorded."""
        every = [part for of_layer in states for part in parts_of(of_layer)]
        parts = [part for part in every if isinstance(part, CapturableState)]
        keeping = [part for part in parts if isinstance(part, KeysValues)]
        begun = len(parts) == len(every) and keeping and all(part.held(0) is not None for part in parts)
        if self._record is None or not begun or not is_plain(layers, x, context):
            return stack.step(layers, x, context, states)
        written, weight = keeping[0].length, next(layers[0].parameters(), None)
        if self._latest is None or self._key != _key(x, weight, parts):
            self._latest = None
            for part in parts:
                part.held(ROOM * x.size(1))
            self._key = _key(x, weight, parts)

            def run(x: Tensor, context: LayerContext) -> Tensor:
                return stack.step(layers, x, context, states)

            self._latest = _StaticStep(run, x, context.hypotheses, parts)
        try:
            return self._latest(x, context.padding_mask, written, self._record)
        except RuntimeError as error:
            if self._latest.is_recorded:
                raise
            warn(f"Steps of the decoder cannot be recorded, and are computed one by one: {error}.", stacklevel=2)
            self._record = self._latest = None
            return stack.step(layers, x, context, states)


class _StaticStep:
    """A step of one new position of each hypothesis, for the tensors that its states have now.

    Self-attention reads all the room that there is for keys, under a mask of what is not written yet, and a tensor says
    where new keys go. So steps differ in numbers alone.
    """

    def __init__(
        self,
        run: Callable[[Tensor, LayerContext], Tensor],
        x: Tensor,
        hypotheses: int,
        parts: Sequence[CapturableState],
    ) -> None:
        self._run, self._parts, self._hypotheses = run, parts, hypotheses
        self._held = [part.held(0) or [] for part in parts]
        room = 0
        for part, held in zip(parts, self._held, strict=True):
            if isinstance(part, KeysValues):
                for each in held:
                    # A mask does not hide NaN.
                    each[:, :, part.length :] = 0.0
                    room = each.size(2)
            elif isinstance(part, Carried):
                held[:] = [torch.empty_like(each) for each in held]
        self._x, self._new = torch.empty_like(x), torch.arange(x.size(1), device=x.device)
        self._positions = torch.empty_like(self._new)
        # Kernels want rows that begin at multiples of 16 values; see `as_bias`.
        blocked = x.new_full((len(x), 1, x.size(1), -(-room // 16) * 16), -torch.inf)
        self._blocked = blocked[..., :room]
        self._replay: Callable[[], None] | None = None

    @property
    def is_recorded(self) -> bool:
        return self._replay is not None

    def __call__(self, x: Tensor, blocked: Tensor | None, written: int, record: Record) -> Tensor:
        """Compute the step of ``x`` (B, W, D) after ``written`` positions of each document; see `LayerContext`."""
        seen = self._blocked[..., : written + x.size(1)]
        self._x.copy_(x)
        torch.add(self._new, written, out=self._positions)
        if blocked is None:
            seen.zero_()
        else:
            seen.copy_(blocked)
        for part, held in zip(self._parts, self._held, strict=True):
            if isinstance(part, Carried) and part.value is not None:
                held[0].copy_(part.value)
        if self._replay is None:
            try:
                self._replay = record(self._compute, x.device)
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
        self._y = self._run(self._x, LayerContext(self._blocked, hypotheses=self._hypotheses))
        self._renewed = [each for part in self._parts for each in part.renewed()]

    def _put(self, room: Tensor, new: Tensor) -> Tensor:
        return room.index_copy_(2, self._positions, new)


def _key(x: Tensor, weight: Tensor | None, parts: Sequence[CapturableState]) -> tuple[Any, ...]:
    """Return what a step must have in common with a recorded one: shapes, and where tensors lie."""
    held = [each for part in parts if not isinstance(part, Carried) for each in part.held(x.size(1)) or []]
    return id(weight), x.shape, x.dtype, x.device, *((each.data_ptr(), each.shape) for each in held)
