"""A layer: sublayers, one after the other."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.sublayer import LayerContext, Pair, State, SublayerFunction

Function = TypeVar("Function", bound=SublayerFunction)
#: What makes a norm of a width, by name: layer (Ba et al. 2016), and rms, without a mean and a bias (Zhang and Sennrich
#: 2019).
NORMS: dict[str, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "rms": partial(nn.RMSNorm, eps=1e-6)}


class Sublayer(nn.Module):
    """Adds a function's output to its input; the norm is before the function or after the sum.

    Args:
        normalize_before: pre-norm (Xiong et al. 2020) instead of post-norm (Vaswani et al. 2017).
        beside: a second function, whose output is added as well; it reads the input before any norm, and its output is
            not dropped. Or None.
        global_vectors: the last ``global_vectors`` vectors have their own norm.
    """

    def __init__(
        self,
        function: SublayerFunction,
        embed_dim: int,
        dropout: float = 0.0,
        normalize_before: bool = False,
        beside: SublayerFunction | None = None,
        norm: Callable[[int], nn.Module] = nn.LayerNorm,
        global_vectors: int = 0,
    ) -> None:
        super().__init__()
        self.function = function
        self.norm = norm(embed_dim)
        self.global_norm = norm(embed_dim) if global_vectors else None
        self.global_vectors = global_vectors
        self.dropout = Dropout(dropout)
        self.normalize_before = normalize_before
        self.beside = beside

    @property
    def functions(self) -> list[SublayerFunction]:
        """What it computes: its function, and the one beside it."""
        return [self.function, *([] if self.beside is None else [self.beside])]

    def new_state(self) -> State | None:
        """Return the state before the first cached step; None if steps need nothing of earlier ones."""
        states = [function.new_state() for function in self.functions]
        return states[0] if len(states) == 1 else Pair(*states)

    def entering(self, x: Tensor) -> Tensor:
        """Return what the function reads: (B, L, D) -> (B, L, D)."""
        return self._normalized(x) if self.normalize_before else x

    def branch(self, x: Tensor, context: LayerContext) -> Tensor:
        """Return what is added to ``x``: (B, L, D) -> (B, L, D)."""
        read = self.entering(x)
        watcher = context.watchers.get(self.function)
        if watcher is not None:
            watcher(read.detach())
        added: Tensor = self.dropout(self.function(read, context))
        return added if self.beside is None else added + self.beside(x, context)

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        return self.leaving(x + self.branch(x, context))

    def step_branch(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        """Return what a cached step adds to ``x``; shapes as in `SublayerFunction.step`."""
        if self.beside is None:
            return self.dropout(self.function.step(self.entering(x), context, state))
        assert isinstance(state, Pair)
        added = self.dropout(self.function.step(self.entering(x), context, state.first))
        return added + self.beside.step(x, context, state.second)

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        """Compute one cached step; shapes as in `SublayerFunction.step`."""
        return self.leaving(x + self.step_branch(x, context, state))

    def leaving(self, x: Tensor) -> Tensor:
        """Return the sublayer's output, given the sum ``x``: (B, L, D) -> (B, L, D)."""
        return x if self.normalize_before else self._normalized(x)

    def _normalized(self, x: Tensor) -> Tensor:
        if self.global_norm is None:
            return self.norm(x)
        tokens, others = x.split([x.size(1) - self.global_vectors, self.global_vectors], dim=1)
        return torch.cat([self.norm(tokens), self.global_norm(others)], dim=1)


class Layer(nn.Module):
    """Sublayers, one after the other, by name, e.g. "self_attention" and "feed_forward"."""

    def __init__(self, sublayers: Mapping[str, Sublayer]) -> None:
        super().__init__()
        self.sublayers = nn.ModuleDict(sublayers)

    @property
    def confined_to(self) -> int | None:
        """The blocks within which all sublayers stay, in positions counted from the first; None for no such limit."""
        reaches = [function.confined_to for function in self._functions()]
        known = [reach for reach in reaches if reach is not None]
        longest = max(known, default=1)
        # Blocks of 8 hold blocks of 4, but not of 3.
        return longest if len(known) == len(reaches) and all(longest % reach == 0 for reach in known) else None

    @cached_property
    def steps_alike(self) -> bool:
        """Whether the cached steps of all sublayers are alike; see `SublayerFunction.steps_alike`."""
        return all(function.steps_alike for function in self._functions())

    def function(self, kind: type[Function]) -> Function | None:
        """Return the layer's first function of this ``kind``, or None."""
        return next(iter(self.functions(kind)), None)

    def functions(self, kind: type[Function]) -> list[Function]:
        """Return the layer's functions of this ``kind``, in their order."""
        return [function for function in self._functions() if isinstance(function, kind)]

    def _functions(self) -> list[SublayerFunction]:
        return [function for one in self.sublayers.values() for function in cast(Sublayer, one).functions]

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        for sublayer in self.sublayers.values():
            x = sublayer(x, context)
        return x

    def new_states(self) -> list[State | None]:
        """Return the states before the first cached step, one per sublayer."""
        return [cast(Sublayer, sublayer).new_state() for sublayer in self.sublayers.values()]

    def step(self, x: Tensor, context: LayerContext, states: Sequence[State | None]) -> Tensor:
        """Compute one cached step; shapes as in `SublayerFunction.step`."""
        for sublayer, state in zip(self.sublayers.values(), states, strict=True):
            x = cast(Sublayer, sublayer).step(x, context, state)
        return x
