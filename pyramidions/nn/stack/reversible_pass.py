"""A pass over sublayers that are computed back in the backward pass."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from torch.utils.checkpoint import get_device_states, set_device_states

from pyramidions.base.device import has_values
from pyramidions.nn.functional.precision import full_precision, full_type
from pyramidions.nn.functional.replay import Decisions
from pyramidions.nn.layer import Sublayer
from pyramidions.nn.sublayer import NOBODY, LayerContext

_STEPS = 2.0**32
_PIECE = 2**15  # numbers that a CPU adds at a time, so that they stay in its cache until they are added


def reversible_pass(
    sublayers: Sequence[Sublayer], context: LayerContext, first: Tensor, second: Tensor, merges: bool = True
) -> Tensor:
    """Return the mean of two streams (B, L, D) that sublayers add to in turn; unmerged, both side by side, (B, L, 2D).

    Only the last values are kept. Streams are sums in float64, of numbers that are multiples of 2 ** -32: exact up to 2
    ** 21, so that the backward pass reads the very values that the forward pass did. (Sums of a model in float64 are
    its own, and come back to rounding.) What a sublayer decides, such as the buckets of LSH attention, is kept and
    repeated, `replayed`: values that are only almost the same could be hashed into other buckets.

    Each sublayer is a node of autograd's graph, so that gradients of its weights are handed on before those of the next
    are computed. Its inputs and outputs stand for the streams, whose values are elsewhere.
    """
    streams = _Streams(first, second)
    read = [leaf for leaf in tree_leaves(context) if learns(leaf)]
    first, second = _Beginning.apply(streams, first, second)
    for sublayer in sublayers:
        weights = {name: weight for name, weight in sublayer.named_parameters() if weight.requires_grad}
        first, second = _Addition.apply(
            streams, sublayer, context, list(weights), first, second, *read, *weights.values()
        )
    return _End.apply(streams, merges, first, second)


class _Streams:
    """The values of both streams: only the last are kept; the backward pass recovers those before."""

    def __init__(self, first: Tensor, second: Tensor) -> None:
        self.dtype = first.dtype
        self.autocast = _autocast_of(first)
        self.first, self.second = (torch.zeros(x.shape, dtype=torch.float64, device=x.device) for x in (first, second))
        _add(self.first, first.detach())
        _add(self.second, second.detach())

    def add(self, branch: Tensor) -> None:
        """(x1, x2) -> (x2, x1 + f(x2)), in place."""
        _add(self.first, branch.detach())
        self.first, self.second = self.second, self.first

    def subtract(self, branch: Tensor) -> None:
        """(x2, x1 + f(x2)) -> (x1, x2), in place."""
        _add(self.second, branch.detach(), -1)
        self.first, self.second = self.second, self.first

    def forget(self) -> None:
        """Keep no values."""
        del self.first, self.second


class _Beginning(torch.autograd.Function):
    """Stands for both streams at their beginning."""

    @staticmethod
    def forward(ctx: Any, streams: _Streams, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        ctx.streams = streams
        kind = full_type(first.dtype)
        first, second = (torch.zeros((), dtype=kind, device=x.device).expand(x.shape) for x in (first, second))
        return first, second

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_first: Tensor, of_second: Tensor) -> tuple[None, Tensor, Tensor]:
        ctx.streams.forget()
        return None, of_first.to(ctx.streams.dtype), of_second.to(ctx.streams.dtype)


class _Addition(torch.autograd.Function):
    """A sublayer, which adds to the first stream what it computes of the second; then they change places."""

    @staticmethod
    def forward(
        ctx: Any,
        streams: _Streams,
        sublayer: Sublayer,
        context: LayerContext,
        names: list[str],
        first: Tensor,
        second: Tensor,
        *learning: Tensor,
    ) -> tuple[Tensor, Tensor]:
        ctx.streams, ctx.sublayer, ctx.decisions = streams, sublayer, Decisions()
        read = len(learning) - len(names)
        ctx.save_for_backward(*learning[:read])
        leaves, ctx.structure = tree_flatten(context._replace(watchers=NOBODY))
        ctx.places = [place for place, leaf in enumerate(leaves) if learns(leaf)]
        ctx.leaves = [None if learns(leaf) else leaf for leaf in leaves]
        ctx.weights = dict(zip(names, learning[read:], strict=True))
        ctx.start = _RandomState.now(streams.second)
        # With gradients, which nobody keeps: so the kernels are those of the backward pass.
        unsaved = saved_tensors_hooks(_nothing, _nothing)
        with streams.autocast(), torch.enable_grad(), unsaved, ctx.decisions.recording():
            branch = sublayer.branch(streams.second.detach().to(streams.dtype).requires_grad_(), context)
        streams.add(branch)
        return second.view_as(second), first.view_as(first)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_first: Tensor, of_second: Tensor) -> tuple[Tensor | None, ...]:
        streams: _Streams = ctx.streams
        x, *read = (x.detach().requires_grad_() for x in (streams.first.to(streams.dtype), *ctx.saved_tensors))
        # In their place, so that hooks on weights see the sum of all gradients alone.
        lent = {f"sublayer.{name}": weight.detach().requires_grad_() for name, weight in ctx.weights.items()}
        with torch.random.fork_rng(ctx.start.devices, device_type=x.device.type):
            ctx.start.restore()
            with streams.autocast(), torch.enable_grad(), ctx.decisions.replaying():
                branch = functional_call(_Branch(ctx.sublayer), lent, (x, _context(ctx, read)))
            of_x, *others = torch.autograd.grad(
                branch, [x, *read, *lent.values()], of_second.to(branch.dtype), allow_unused=True
            )
        streams.subtract(branch)
        if not ctx.needs_input_grad[4]:
            # Nothing before learns, so that this is the last to run.
            streams.forget()
        return None, None, None, None, of_second, of_first if of_x is None else of_first + of_x, *others


class _End(torch.autograd.Function):
    """Keeps the streams at their end, and returns their mean, or both side by side."""

    @staticmethod
    def forward(ctx: Any, streams: _Streams, merges: bool, first: Tensor, second: Tensor) -> Tensor:
        ctx.streams, ctx.merges = streams, merges
        ctx.save_for_backward(streams.first, streams.second)
        ends = streams.first, streams.second
        ended = (ends[0] + ends[1]) / 2 if merges else torch.cat(ends, dim=-1)
        streams.forget()
        return ended.to(streams.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor, Tensor]:
        # What is saved stays as it is: a backward pass may be repeated.
        ctx.streams.first, ctx.streams.second = (end.clone() for end in ctx.saved_tensors)
        grad = full_precision(grad)
        first, second = (grad / 2, grad / 2) if ctx.merges else grad.chunk(2, dim=-1)
        return None, None, first, second


class _Branch(nn.Module):
    """What a sublayer adds to its input, as a module that can be called with other weights."""

    def __init__(self, sublayer: Sublayer) -> None:
        super().__init__()
        self.sublayer = sublayer

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        return self.sublayer.branch(x, context)


class _RandomState(NamedTuple):
    """Where random numbers begin, on the host and on the device of a tensor."""

    host: Tensor
    devices: list[int]
    states: list[Tensor]
    device_type: str

    @classmethod
    def now(cls, x: Tensor) -> "_RandomState":
        """Return the present state."""
        devices, states = ([], []) if x.is_cpu or not has_values(x) else get_device_states(x)
        return cls(torch.get_rng_state(), devices, states, x.device.type)

    def restore(self) -> None:
        """Begin here again."""
        torch.set_rng_state(self.host)
        set_device_states(self.devices, self.states, device_type=self.device_type)


def learns(x: object) -> bool:
    """Return whether something is a tensor that needs a gradient."""
    return isinstance(x, Tensor) and x.requires_grad


def _context(ctx: Any, read: list[Tensor]) -> LayerContext:
    """Return the context of a pass, with ``read`` where it has what learns."""
    leaves = list(ctx.leaves)
    for place, tensor in zip(ctx.places, read, strict=True):
        leaves[place] = tensor
    return tree_unflatten(leaves, ctx.structure)


def _autocast_of(x: Tensor) -> Callable[[], AbstractContextManager[object]]:
    """Return what enters the present autocast again; it holds no copies of weights."""
    kind = x.device.type
    if not torch.amp.is_autocast_available(kind):
        return nullcontext
    enabled, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    return partial(torch.autocast, kind, dtype=dtype, enabled=enabled, cache_enabled=False)


def _on_grid(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.double().mul_(_STEPS).round_().div_(_STEPS)


def _add(stream: Tensor, x: Tensor, times: int = 1) -> None:
    """Add a multiple of ``x`` to a stream in place."""
    size = _PIECE if stream.is_cpu else max(1, stream.numel())
    for piece, added in zip(stream.view(-1).split(size), x.reshape(-1).split(size), strict=True):
        piece.add_(_on_grid(added), alpha=times)


def _nothing(_: object) -> Any:
    """Stand for what is not saved."""
    return None
