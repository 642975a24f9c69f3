"""A pass over sublayers that are computed back in the backward pass."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.autograd.graph import saved_tensors_hooks
from torch.func import functional_call
from torch.utils._pytree import tree_flatten, tree_unflatten
from torch.utils.checkpoint import get_device_states, set_device_states

from pyramidions.nn.functional.replay import Decisions
from pyramidions.nn.layer import Sublayer
from pyramidions.nn.sublayer import NOBODY, LayerContext

_STEPS = 2.0**32
_PIECE = 2**15  # numbers that a CPU adds at a time, so that they stay in its cache until they are added


class ReversiblePass(torch.autograd.Function):
    """Two streams that sublayers add to in turn, of which only the last values are kept.

    Streams are sums in float64, of numbers that are multiples of 2 ** -32: exact up to 2 ** 21, so that the backward
    pass reads the very values that the forward pass did. (Sums of a model in float64 are its own, and come back to
    rounding.) What a sublayer decides, such as the buckets of LSH attention, is kept and repeated, `replayed`: values
    that are only almost the same could be hashed into other buckets.

    Everything that learns is an input, so that its gradient reaches it in the ordinary way.
    """

    @staticmethod
    def forward(ctx: Any, sublayers: list[Sublayer], context: LayerContext, x: Tensor, *learning: Tensor) -> Tensor:
        """Run ``sublayers``.

        Args:
            ctx: of autograd.
            sublayers: one after the other.
            context: what they read besides.
            x: (B, L, D), the beginning of both streams.
            learning: what needs gradients in ``context``, followed by the weights that do.

        Returns:
            (B, L, D), the mean of both streams.
        """
        first = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
        _add(first, x)
        second = first.clone()
        ctx.starts, ctx.decisions, ctx.autocast = [], [Decisions() for _ in sublayers], _autocast_of(x)
        # With gradients, which nobody keeps: so the kernels are those of the backward pass.
        with ctx.autocast(), torch.enable_grad(), saved_tensors_hooks(_nothing, _nothing):
            for sublayer, decisions in zip(sublayers, ctx.decisions, strict=True):
                ctx.starts.append(_RandomState.now(x))
                with decisions.recording():
                    branch = sublayer.branch(second.detach().to(x.dtype).requires_grad_(), context)
                _add(first, branch.detach())
                first, second = second, first
        leaves, ctx.structure = tree_flatten(context._replace(watchers=NOBODY))
        ctx.places = [place for place, leaf in enumerate(leaves) if learns(leaf)]
        ctx.save_for_backward(first, second, *learning[: len(ctx.places)])
        ctx.leaves = [None if learns(leaf) else leaf for leaf in leaves]
        ctx.sublayers, ctx.weights, ctx.dtype = sublayers, learning[len(ctx.places) :], x.dtype
        return ((first + second) / 2).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients of `forward`'s arguments."""
        first, second, *read = ctx.saved_tensors
        # What is saved stays as it is: a backward pass may be repeated.
        first, second = first.clone(), second.clone()
        of_first = of_second = grad.to(torch.promote_types(grad.dtype, torch.float32)) / 2
        of_read: list[Tensor | None] = [None] * len(read)
        of_weights: dict[int, Tensor | None] = {}
        with torch.random.fork_rng(ctx.starts[0].devices if ctx.starts else [], device_type=grad.device.type):
            made = zip(ctx.sublayers, ctx.starts, ctx.decisions, strict=True)
            for sublayer, start, decisions in reversed(list(made)):
                x, *context = (tensor.detach().requires_grad_() for tensor in (first.to(ctx.dtype), *read))
                weights = {name: weight for name, weight in sublayer.named_parameters() if weight.requires_grad}
                # In their place, so that hooks on weights see the sum of all gradients alone.
                lent = {f"sublayer.{name}": weight.detach().requires_grad_() for name, weight in weights.items()}
                start.restore()
                with ctx.autocast(), torch.enable_grad(), decisions.replaying():
                    branch = functional_call(_Branch(sublayer), lent, (x, _context(ctx, context)))
                of_x, *others = torch.autograd.grad(
                    branch, [x, *context, *lent.values()], of_second.to(branch.dtype), allow_unused=True
                )
                of_read = [_sum(*both) for both in zip(of_read, others[: len(read)], strict=True)]
                for weight, found in zip(weights.values(), others[len(read) :], strict=True):
                    of_weights[id(weight)] = _sum(of_weights.get(id(weight)), found)
                # (x2, x1 + f(x2)) -> (x1, x2)
                _add(second, branch.detach(), -1)
                first, second = second, first
                of_first, of_second = of_second, of_first if of_x is None else of_first + of_x
        in_order = [of_weights[id(weight)] for weight in ctx.weights]
        return None, None, (of_first + of_second).to(grad.dtype), *of_read, *in_order


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
        devices, states = ([], []) if x.is_cpu or x.is_meta else get_device_states(x)
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
    context: LayerContext = tree_unflatten(leaves, ctx.structure)
    return context


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


def _sum(so_far: Tensor | None, further: Tensor | None) -> Tensor | None:
    if so_far is None or further is None:
        return further if so_far is None else so_far
    return so_far + further


def _nothing(_: object) -> Any:
    """Stand for what is not saved."""
    return None
