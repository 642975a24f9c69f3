"""Recurrences: the role, the registry of kinds, and the simple recurrent unit."""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import Count
from pyramidions.base.registry import Registry
from pyramidions.nn.functional.chunking import pad_to_multiple
from pyramidions.nn.functional.linear_recurrence import linear_recurrence
from pyramidions.nn.functional.precision import full_type
from pyramidions.nn.sublayer import Carried, LayerContext, State, SublayerFunction


class Recurrence(SublayerFunction):
    """Passes over positions from the first to the last, beside the feed-forward part of a layer.

    It reads what enters the layer's sublayer, before any norm, and is added to what the feed-forward part adds. Padding
    is passed over, wherever it stands. It begins anew at each block of ``confined_to`` positions, within which the
    layer's attention stays.
    """

    def __init__(self, confined_to: int | None = None) -> None:
        super().__init__()
        self.confined_to = confined_to

    @abstractmethod
    def run(self, x: Tensor, padding_mask: Tensor | None, carried: Tensor | None) -> tuple[Tensor, Tensor]:
        """Pass over sequences (B, L, D), but for positions of ``padding_mask``; return output, and what is carried on.

        ``carried`` (B, ...) is from the positions before; None at the beginning.
        """

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        padding_mask, length = context.padding_mask, x.size(1)
        if self.confined_to is None or length <= self.confined_to:
            return self.run(x, padding_mask, None)[0]
        # (B, L, D) -> (B * L/M, M, D) and back
        blocks = pad_to_multiple(x, self.confined_to, dim=1)
        if padding_mask is not None:
            padding_mask = pad_to_multiple(padding_mask, self.confined_to, dim=1, value=True)
            padding_mask = padding_mask.reshape(-1, self.confined_to)
        out, _ = self.run(blocks.reshape(-1, self.confined_to, x.size(2)), padding_mask, None)
        return out.view_as(blocks)[:, :length]

    @property
    def steps_alike(self) -> bool:
        return True

    def new_state(self) -> Carried:
        return Carried()

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        assert isinstance(state, Carried)
        # (B, WT, D) -> (BW, T, D) and back
        new = x.unflatten(1, (context.hypotheses, -1)).flatten(0, 1)
        out, state.value = self.run(new, context.new_padding_mask, state.value)
        return out.view_as(x)


RECURRENCE: Registry[Recurrence] = Registry("recurrence")


@RECURRENCE.register("sru")
class SRURecurrence(Recurrence):
    """Simple recurrent units in few dimensions (Lei et al. 2018), as the Terraformer has them.

    A norm of its own, a linear layer to ``dim`` dimensions, the units, and a linear layer back (Jaszczur et al. 2021,
    section 4.3, and their public code).

    Args:
        dim: width of a unit.
        layers: units, one after the other.
        scaled: the highway term is multiplied by sqrt(3), and y has a bias, as in the public code; releases up to 0.2.0
            had neither.
    """

    def __init__(
        self, embed_dim: int, dim: Count = 32, layers: Count = 1, scaled: bool = True, confined_to: int | None = None
    ) -> None:
        super().__init__(confined_to)
        self.norm = nn.LayerNorm(embed_dim)
        self.down = _linear(embed_dim, dim)
        self.units = nn.ModuleList(_Unit(dim, scaled) for _ in range(layers))
        self.up = _linear(dim, embed_dim)

    def run(self, x: Tensor, padding_mask: Tensor | None, carried: Tensor | None) -> tuple[Tensor, Tensor]:
        """Pass over sequences; what is carried is (B, ``layers``, ``dim``), at least in float32."""
        h, last = self.down(self.norm(x)), []
        before: Sequence[Tensor | None] = [None] * len(self.units) if carried is None else carried.unbind(dim=1)
        for unit, value in zip(self.units, before, strict=True):
            h, after = unit(h, padding_mask, value)
            last.append(after)
        return self.up(h), torch.stack(last, dim=1)


class _Unit(nn.Module):
    """A simple recurrent unit: (B, L, d) -> (B, L, d) and the last state (B, d).

    c_t = f_t c_(t-1) + (1 - f_t) y_t, and the output is q_t c_t + (1 - q_t) x_t sqrt(3), where y is linear in x,
    and the gates f and q are sigmoids of x alone.
    """

    def __init__(self, dim: int, scaled: bool) -> None:
        super().__init__()
        self.scale = 3**0.5 if scaled else 1.0
        self.transform = _linear(dim, dim, bias=scaled)
        self.forget = _linear(dim, dim)
        self.highway = _linear(dim, dim)

    def forward(self, x: Tensor, padding_mask: Tensor | None, before: Tensor | None) -> tuple[Tensor, Tensor]:
        dtype = full_type(x.dtype)
        # Sums over thousands of positions need more digits than mixed precision has.
        y, f, q = (layer(x).to(dtype) for layer in (self.transform, self.forget, self.highway))
        kept, new = f.sigmoid(), (-f).sigmoid() * y
        if padding_mask is not None:
            kept = kept.masked_fill(padding_mask[..., None], 1.0)
            new = new.masked_fill(padding_mask[..., None], 0.0)
        c = linear_recurrence(kept, new, before)
        return torch.lerp(self.scale * x.to(dtype), c, q.sigmoid()).to(x.dtype), c[:, -1]


def _linear(width: int, out: int, bias: bool = True) -> nn.Linear:
    layer = nn.Linear(width, out, bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
