"""Attention as a sublayer: projections around an attention kind."""

import torch
from torch import Tensor

from pyramidions.nn.attention.core import CoreAttention, MarkedAttention
from pyramidions.nn.attention.global_rows import GlobalRows
from pyramidions.nn.attention.state import KeysValues, ProjectedMemory
from pyramidions.nn.marks import Marks
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import LayerContext, State, SublayerFunction


class SelfAttention(SublayerFunction):
    """Multi-head attention among the positions of a sequence (Vaswani et al. 2017, section 3.2.2).

    Args:
        projections: of queries, keys, values and the output.
        attention: the kind, between projected heads.
        is_causal: position i sees positions up to i.
        global_rows: what marked positions see, if the kind reads marks; None for the same projections, undropped.

    Raises:
        ValueError: causal attention of a kind that does not mask by query.
    """

    def __init__(
        self,
        projections: Projections,
        attention: CoreAttention,
        is_causal: bool = False,
        global_rows: GlobalRows | None = None,
    ) -> None:
        super().__init__()
        if is_causal and not attention.masks_by_query:
            raise ValueError(
                "A decoder's `self_attention` must be of a kind that masks by query, "
                f"but is {type(attention).__name__}."
            )
        self.projections = projections
        self.attention = attention
        self.is_causal = is_causal
        self.confined_to = attention.confined_to
        reads_marks = isinstance(attention, MarkedAttention)
        self.global_rows = (global_rows or GlobalRows()) if reads_marks else None

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        q, k, v = self.projections(x)
        mask, marks = context.padding_mask, context.marks
        if marks is not None and self.global_rows is not None:
            mixed = self.attention(q, k, v, mask, is_causal=self.is_causal, marks=marks)
            return self.projections.output(marks.put(mixed, self.global_rows(x, (q, k, v), marks, mask)))
        return self.projections.output(self.attention(q, k, v, mask, is_causal=self.is_causal))

    def new_state(self) -> KeysValues:
        return KeysValues()

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        assert isinstance(state, KeysValues)
        # A document's hypotheses are further queries to its keys and values.
        q, k, v = self.projections(x)
        return self.projections.output(self.attention(q, *state.extend(k, v), context.padding_mask))

    @torch.no_grad()
    def received(self, x: Tensor, padding_mask: Tensor | None, marks: Marks | None = None) -> Tensor:
        """Return how much attention each position of ``x`` (B, L, D) receives: (B, L), zero at padding.

        Raises:
            ValueError: the kind cannot tell.
        """
        q, k, _ = self.projections(x)
        if marks is None or not isinstance(self.attention, MarkedAttention):
            return self.attention.received(q, k, padding_mask)
        assert self.global_rows is not None
        from_marks = self.global_rows.received(x, q, k, marks, padding_mask)
        return self.attention.received(q, k, padding_mask, marks) + from_marks


class CrossAttention(SublayerFunction):
    """Multi-head attention from a sequence to a memory (Vaswani et al. 2017, section 3.2.3).

    Args:
        projections: of queries, keys, values and the output.
        attention: the kind, between projected heads.
    """

    confined_to = 1

    def __init__(self, projections: Projections, attention: CoreAttention) -> None:
        super().__init__()
        self.projections = projections
        self.attention = attention

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        return self._attend(x, self._project(context), context)

    def new_state(self) -> ProjectedMemory:
        return ProjectedMemory()

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        assert isinstance(state, ProjectedMemory)
        if state.keys_values is None:
            state.keys_values = self._project(context)
        return self._attend(x, state.keys_values, context)

    def weights(self, x: Tensor, context: LayerContext) -> Tensor:
        """Return how much ``x`` (B, T, D) attends to the memory (B, K, D) in each head: (B, H, T, K).

        Raises:
            ValueError: the kind cannot tell.
        """
        k, _ = self._project(context)
        return self.attention.weights(self.projections.queries(x), k, context.memory_padding_mask)

    def _project(self, context: LayerContext) -> tuple[Tensor, Tensor]:
        assert context.memory is not None
        return self.attention.keys_values(self.projections, context.memory)

    def _attend(self, x: Tensor, keys_values: tuple[Tensor, Tensor], context: LayerContext) -> Tensor:
        # The hypotheses of a document are further queries to its memory: (BW, T, D) -> (B, WT, D)
        q = self.projections.queries(x.reshape(keys_values[0].size(0), -1, x.size(-1)))
        return self.projections.output(self.attention(q, *keys_values, context.memory_padding_mask)).view_as(x)
