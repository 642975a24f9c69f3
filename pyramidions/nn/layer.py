"""A layer: sublayers, one after the other."""

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from torch import Tensor, nn

from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.sublayer import LayerContext, State, SublayerFunction

Function = TypeVar("Function", bound=SublayerFunction)


class Sublayer(nn.Module):
    """Adds a function's output to its input; the norm is before the function or after the sum.

    Args:
        function: computes the output.
        embed_dim: D.
        dropout: probability of dropping a value of the function's output while training.
        normalize_before: pre-norm (Xiong et al. 2020) instead of post-norm (Vaswani et al. 2017).
    """

    def __init__(
        self, function: SublayerFunction, embed_dim: int, dropout: float = 0.0, normalize_before: bool = False
    ) -> None:
        super().__init__()
        self.function = function
        self.norm = nn.LayerNorm(embed_dim)
        self.dropout = Dropout(dropout)
        self.normalize_before = normalize_before

    def entering(self, x: Tensor) -> Tensor:
        """Return what the function reads: (B, L, D) -> (B, L, D)."""
        return self.norm(x) if self.normalize_before else x

    def branch(self, x: Tensor, context: LayerContext) -> Tensor:
        """Return what is added to ``x``: (B, L, D) -> (B, L, D)."""
        x = self.entering(x)
        watcher = context.watchers.get(self.function)
        if watcher is not None:
            watcher(x.detach())
        return self.dropout(self.function(x, context))

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        return self.leaving(x + self.branch(x, context))

    def step_branch(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        """Return what a cached step adds to ``x``; shapes as in `SublayerFunction.step`."""
        return self.dropout(self.function.step(self.entering(x), context, state))

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        """Compute one cached step; shapes as in `SublayerFunction.step`."""
        return self.leaving(x + self.step_branch(x, context, state))

    def leaving(self, x: Tensor) -> Tensor:
        """Return the sublayer's output, given the sum ``x``: (B, L, D) -> (B, L, D)."""
        return x if self.normalize_before else self.norm(x)


class Layer(nn.Module):
    """Sublayers, one after the other.

    Args:
        sublayers: by name, in their order, e.g. "self_attention" and "feed_forward".
    """

    def __init__(self, sublayers: Mapping[str, Sublayer]) -> None:
        super().__init__()
        self.sublayers = nn.ModuleDict(sublayers)

    @property
    def confined_to(self) -> int | None:
        """The blocks within which all sublayers stay, in positions counted from the first; None for no such limit."""
        reaches = [cast(Sublayer, sublayer).function.confined_to for sublayer in self.sublayers.values()]
        known = [reach for reach in reaches if reach is not None]
        longest = max(known, default=1)
        # Blocks of 8 hold blocks of 4, but not of 3.
        return longest if len(known) == len(reaches) and all(longest % reach == 0 for reach in known) else None

    def function(self, kind: type[Function]) -> Function | None:
        """Return the layer's first function of this ``kind``, or None."""
        return next(iter(self.functions(kind)), None)

    def functions(self, kind: type[Function]) -> list[Function]:
        """Return the layer's functions of this ``kind``, in their order."""
        functions = (cast(Sublayer, sublayer).function for sublayer in self.sublayers.values())
        return [function for function in functions if isinstance(function, kind)]

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        """(B, L, D) -> (B, L, D)."""
        for sublayer in self.sublayers.values():
            x = sublayer(x, context)
        return x

    def new_states(self) -> list[State | None]:
        """Return the states before the first cached step, one per sublayer."""
        return [cast(Sublayer, sublayer).function.new_state() for sublayer in self.sublayers.values()]

    def step(self, x: Tensor, context: LayerContext, states: Sequence[State | None]) -> Tensor:
        """Compute one cached step; shapes as in `SublayerFunction.step`."""
        for sublayer, state in zip(self.sublayers.values(), states, strict=True):
            x = cast(Sublayer, sublayer).step(x, context, state)
        return x
