"""Attention as a sublayer: projections around an attention kind, and what marked positions see."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.attention.core_attention import CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.attention.state import ProjectedMemory
from pyramidions.nn.functional.chunking import chunked
from pyramidions.nn.functional.dropout import drop
from pyramidions.nn.functional.masking import attendable
from pyramidions.nn.functional.precision import full_type
from pyramidions.nn.marks import Marks
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, Pair, State, SublayerFunction


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


class SelfAttention(SublayerFunction):
    """Multi-head attention among the positions of a sequence (Vaswani et al. 2017, section 3.2.2).

    ``global_rows`` tell what marked positions see, if the kind reads marks; None for the same projections, undropped.
    """

    def __init__(
        self,
        projections: Projections,
        attention: CoreAttention,
        is_causal: bool = False,
        global_rows: GlobalRows | None = None,
    ) -> None:
        super().__init__()
        if projections.look_back and Feature.UNITS in attention.supports:
            raise ValueError(
                f"{type(attention).__name__} stays inside units of the text, so its projections must read each "
                f"position alone, but {type(projections).__name__} reads {projections.look_back} before it."
            )
        self.projections = projections
        self.attention = attention
        self.is_causal = is_causal
        self.confined_to = attention.confined_to
        self.global_rows = (global_rows or GlobalRows()) if Feature.MARKS in attention.supports else None

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        q, k, v = self._projected(x)
        given = self.attention.reading(x, self.projections, context)
        given = given._replace(is_causal=True) if self.is_causal else given
        mixed = self.attention(*with_key_bias(q, k, v, context.key_bias), given)[..., : q.size(-1)]
        if context.marks is not None and self.global_rows is not None:
            mixed = context.marks.put(mixed, self.global_rows(x, (q, k, v), context.marks, context))
        return self.attention.augmented(self.projections.output(mixed), context)

    @property
    def steps_alike(self) -> bool:
        return Feature.STEPS_ALIKE in self.attention.supports

    def new_state(self) -> Pair:
        return Pair(self.projections.new_state(), self.attention.new_state())

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        assert isinstance(state, Pair) and state.second is not None
        q, k, v = self.projections.step(x, context, state.first)
        return self.projections.output(self.attention.step(q, k, v, context.padding_mask, state.second))

    @torch.no_grad()
    def received(self, x: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        """Return how much attention each position of ``x`` (B, L, D) receives: (B, L), zero at padding."""
        q, k, _ = with_key_bias(*self._projected(x), context.key_bias)
        received = self.attention.received(q, k, context)
        if context.marks is not None and self.global_rows is not None:
            received = received + self.global_rows.received(x, q, k, context.marks, context)
        return received

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values: (B, L, D) -> (B, H, L, E) three times."""
        size, length = self.confined_to, x.size(1)
        if self.projections.look_back == 0 or size is None or length <= size:
            q, k, v = self.projections(x)
            return q, k, v
        # Nothing reads beyond its block: (B, L, D) -> (B * L/M, M, D), and (B * L/M, H, M, E) -> (B, H, L, E)
        blocks = chunked(x, size, dim=1).flatten(0, 1)
        q, k, v = (
            each.unflatten(0, (len(x), -1)).transpose(1, 2).flatten(2, 3)[:, :, :length]
            for each in self.projections(blocks)
        )
        return q, k, v


class CrossAttention(SublayerFunction):
    """Multi-head attention from a sequence to the memory of number ``reads`` (Vaswani et al. 2017, section 3.2.3)."""

    def __init__(self, projections: Projections, attention: CoreAttention, reads: int = 0) -> None:
        super().__init__()
        self.confined_to = None if projections.look_back else 1
        self.projections = projections
        self.attention = attention
        self.reads = reads

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        k, v, mask = self._read(context)
        q = self.projections.queries(x)
        hypotheses = len(x) // len(k)
        if hypotheses > 1:
            # Those of a document are further queries to its memory: (BW, H, T, E) -> (B, H, WT, E)
            q = q.unflatten(0, (-1, hypotheses)).transpose(1, 2).flatten(2, 3)
        bias = context.memories[self.reads].key_bias
        mixed = self.attention(*with_key_bias(q, k, v, bias), LayerContext(mask))[..., : q.size(-1)]
        return self.projections.output(mixed).view_as(x)

    @property
    def steps_alike(self) -> bool:
        return Feature.STEPS_ALIKE in self.attention.supports

    def new_state(self) -> ProjectedMemory:
        return ProjectedMemory(self.projections.new_state())

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        assert isinstance(state, ProjectedMemory)
        if state.keys_values is None:
            k, v, state.mask = self._read(context)
            k, v = _biased(k, v, context.memories[self.reads].key_bias)
            # Every step reads them: with a head's keys together, a CPU does so nearly twice as fast.
            state.keys_values = k.contiguous(), v.contiguous()
        q, (k, v) = self.projections.step_queries(x, context, state.projections), state.keys_values
        if q.size(-1) == k.size(-1):
            mixed = self.attention(q, k, v, LayerContext(state.mask))
        else:
            mixed = self.attention(_reading_bias(q), k, v, LayerContext(state.mask))[..., : q.size(-1)]
        return self.projections.output(mixed)

    def weights(self, x: Tensor, context: LayerContext) -> Tensor:
        """Return how much ``x`` (B, T, D) attends to its memory (B, K, D) in each head: (B, H, T, K)."""
        k, v, mask = self._read(context)
        memory, padding = context.memories[self.reads][:2]
        q, k, _ = with_key_bias(self.projections.queries(x), k, v, context.memories[self.reads].key_bias)
        weights = self.attention.weights(q, k, LayerContext(mask))
        if padding is None:
            padding = torch.zeros(memory.shape[:2], dtype=torch.bool, device=x.device)
        return self.attention.spread(weights, padding)

    def _read(self, context: LayerContext) -> tuple[Tensor, Tensor, Tensor | None]:
        return self.attention.keys_values(self.projections, context.memories[self.reads])


# dimensions for the bias: kernels of a GPU want a multiple of 8
_ROOM = 8


def with_key_bias(q: Tensor, k: Tensor, v: Tensor, key_bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return heads by whose products each key has a bias in its scores: one more dimension, in which queries are alike.

    Any attention that is a softmax of scaled products reads them, and gradients reach the bias (B, Lk).
    (B, H, L, E) three times -> (B, H, L, E + 8) three times, with zeros behind the values.
    """
    return q if key_bias is None else _reading_bias(q), *_biased(k, v, key_bias)


def _reading_bias(q: Tensor) -> Tensor:
    narrow, wide = q.size(-1), q.size(-1) + _ROOM
    # Products are divided by the root of the new width.
    return F.pad(F.pad(q * (wide / narrow) ** 0.5, (0, 1), value=wide**0.5), (0, _ROOM - 1))


def _biased(k: Tensor, v: Tensor, key_bias: Tensor | None) -> tuple[Tensor, Tensor]:
    if key_bias is None:
        return k, v
    # (B, Lk) -> (B, H, Lk, 1)
    bias = key_bias[:, None, :, None].expand(-1, k.size(1), -1, -1).to(k.dtype)
    return F.pad(torch.cat([k, bias], dim=-1), (0, _ROOM - 1)), F.pad(v, (0, _ROOM))
