"""What marked positions see: everything."""

import torch
from torch import Tensor, nn

from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.dropout import drop
from pyramidions.nn.functional.masking import attendable
from pyramidions.nn.functional.precision import full_type
from pyramidions.nn.marks import Marks
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import LayerContext


class GlobalRows(nn.Module):
    """Full attention from marked positions (Beltagy et al. 2020, section 3.1), by ``projections`` of their own."""

    def __init__(self, projections: Projections | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        if projections is not None and projections.look_back:
            raise ValueError(
                f"`global_projections` must read each position alone, but {type(projections).__name__} reads "
                f"{projections.look_back} before it."
            )
        self.projections = projections
        self.attention = FullAttention(dropout)

    def forward(self, x: Tensor, heads: tuple[Tensor, Tensor, Tensor], marks: Marks, context: LayerContext) -> Tensor:
        """Attend from places in `Marks.positions`: (B, L, D), and queries, keys, values of all -> (B, H, G, E)."""
        if self.projections is None:
            q, k, v = heads
            return self.attention(marks.take(q), k, v, LayerContext(context.padding_mask))
        rows = marks.take(x)
        if not self.projections.reads_unprojected(marks.most):
            q = self.projections.queries(rows)
            return self.attention(q, *self.projections.keys_values(x), LayerContext(context.padding_mask))
        weights = self._weights(rows, x, context.padding_mask)
        return self.projections.mixed(drop(weights, self.attention.dropout) if self.training else weights, x)

    def received(self, x: Tensor, q: Tensor, k: Tensor, marks: Marks, context: LayerContext) -> Tensor:
        """Return how much attention each position receives from marked ones: (B, L), in float32."""
        if self.projections is not None:
            q, k = self.projections.queries(marks.take(x)), self.projections.keys_values(x)[0]
        else:
            q = marks.take(q)
        return self.attention.received(q, k, context, marks.absent)

    def _weights(self, rows: Tensor, x: Tensor, padding_mask: Tensor | None) -> Tensor:
        assert self.projections is not None
        # (B, H, G, L)
        scores = self.projections.scores(rows, x)
        mask = attendable(padding_mask, False, rows.size(1), x.size(1), x.device)
        full = full_type(scores.dtype)
        return (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(dim=-1, dtype=full)
