"""Cached steps that are captured once and replayed without Python."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast
from warnings import catch_warnings, simplefilter

import torch
from torch import Tensor, nn

from pyramidions.nn.attention.state import KeysValues
from pyramidions.nn.layer import Layer
from pyramidions.nn.stack import Stack
from pyramidions.nn.sublayer import CapturableState, LayerContext, State, parts_of

#: Steps of the same shapes after which one is captured. To capture one takes about as long as so many save.
PATIENCE = 256

States = Sequence[Sequence[State | None]]
#: From the new positions, what is as long as all that is written, and tensors, to the output and tensors.
Graph = Callable[..., tuple[Tensor, ...]]


class CapturedSteps:
    """Steps of layers, which replay what an earlier step of the same shapes did.

    A step of one token calls hundreds of small operators, and Python may take half of its time. A captured step is a
    graph of the same operators, which torch's interpreter runs: the results are the same to the last bit. Weights are
    read where they are, so that training goes on. Only steps on a CPU are captured, without gradients, dropout and
    autocast, and only of layers whose steps are alike (`SublayerFunction.steps_alike`). Other steps are computed as
    they are.

    Copies and pickles know no captured steps.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.patience = patience
        #: by what steps must have in common; each with the first of the weights that it reads
        self.graphs: dict[Any, tuple[Graph, Any]] = {}
        self._seen: Counter[Any] = Counter()

    def __reduce__(self) -> tuple[type["CapturedSteps"], tuple[float]]:
        return CapturedSteps, (self.patience,)

    def step(self, stack: Stack, layers: Sequence[Layer], x: Tensor, context: LayerContext, states: States) -> Tensor:
        """Compute `Stack.step`, by a captured step if there is one."""
        if not (x.is_cpu and is_plain(layers, x, context)):
            return stack.step(layers, x, context, states)
        parts = [part for of_layer in states for part in parts_of(of_layer)]
        capturable = [part for part in parts if isinstance(part, CapturableState)]
        held = [each for part in capturable if (each := part.held(x.size(1))) is not None]
        if len(held) < len(parts):
            return stack.step(layers, x, context, states)
        blocked = [] if context.padding_mask is None else [context.padding_mask]
        tensors = [blocked, *held]
        # A model that was moved has other parameters.
        weight = next(layers[0].parameters(), None)
        key = (id(weight), x.shape, x.dtype, *map(len, tensors))
        if not self._is_due(key):
            return stack.step(layers, x, context, states)
        length = next((part.length for part in parts if isinstance(part, KeysValues)), 0)
        given = (x, x.new_empty(length + x.size(1), 0), *(one for some in tensors for one in some))
        if key not in self.graphs:
            # Memories are read in the first step alone.
            bare = LayerContext(hypotheses=context.hypotheses)
            step = _Step(stack, layers, bare, states, capturable, [*map(len, tensors)])
            self.graphs[key] = _captured(step, given), weight
        graph, _ = self.graphs[key]
        y, *renewed = graph(*given)
        made = iter(renewed)
        for part in capturable:
            part.stepped(made, x.size(1))
        return y

    def _is_due(self, key: Any) -> bool:
        """Whether such a step is captured, or will be now."""
        self._seen[key] += key not in self.graphs
        return key in self.graphs or self._seen[key] > self.patience


def is_plain(layers: Sequence[Layer], x: Tensor, context: LayerContext) -> bool:
    """Whether a step can be captured."""
    return (
        x.size(1) == context.hypotheses
        and not (torch.is_grad_enabled() or torch.is_autocast_enabled(x.device.type))
        and not (torch.compiler.is_compiling() or torch.jit._trace.is_tracing())
        and context == LayerContext(context.padding_mask, context.memories, hypotheses=context.hypotheses)
        and all(layer.steps_alike and not layer.training for layer in layers)
    )


class _Step(nn.Module):
    """A step as a function of tensors: what it must not see, and what each part of the states holds, by ``numbers``."""

    def __init__(
        self,
        stack: Stack,
        layers: Sequence[Layer],
        context: LayerContext,
        states: States,
        parts: Sequence[CapturableState],
        numbers: Sequence[int],
    ) -> None:
        super().__init__()
        self.stack, self.layers = stack, nn.ModuleList(layers)
        self._context, self._states, self._parts, self._numbers = context, states, parts, numbers

    def forward(self, x: Tensor, written: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        blocked, *held = _split(tensors, self._numbers)
        for part, some in zip(self._parts, held, strict=True):
            part.hold(some, partial(_put_last, written))
        context = self._context._replace(padding_mask=blocked[0] if blocked else None)
        y = self.stack.step([cast(Layer, layer) for layer in self.layers], x, context, self._states)
        return (y, *(each for part in self._parts for each in part.renewed()))


def _put_last(written: Tensor, room: Tensor, new: Tensor) -> Tensor:
    """Write new keys at the end of the first S positions, the length of ``written`` (S, 0).

    Sizes of tensors are captured, numbers are not.
    """
    end = written.size(0)
    room.narrow(2, end - new.size(2), new.size(2)).copy_(new)
    return room.narrow(2, 0, end)


def _captured(step: _Step, given: tuple[Tensor, ...]) -> Graph:
    """Trace a step; the tensors of its states stay as they are, but for a position behind the last."""
    before = [part.held(0) or [] for part in step._parts]
    try:
        with catch_warnings():
            # That numbers are captured as they are, which steps that are alike do not mind; and that torch.jit is old.
            simplefilter("ignore")
            return cast(Graph, torch.jit.trace(step.eval(), given, check_trace=False))
    finally:
        for part, tensors in zip(step._parts, before, strict=True):
            part.hold(tensors, None)


def _split(tensors: Sequence[Tensor], numbers: Sequence[int]) -> list[list[Tensor]]:
    left = list(tensors)
    return [[left.pop(0) for _ in range(number)] for number in numbers]
