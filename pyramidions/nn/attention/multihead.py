"""Attention as a sublayer: projections around an attention kind."""

from typing import Any

import torch
from torch import Tensor

from pyramidions.nn.attention.core import CoreAttention
from pyramidions.nn.attention.global_rows import GlobalRows
from pyramidions.nn.attention.state import ProjectedMemory
from pyramidions.nn.marks import Marks
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import LayerContext, State, SublayerFunction
from pyramidions.nn.units import Units


class SelfAttention(SublayerFunction):
    """Multi-head attention among the positions of a sequence (Vaswani et al. 2017, section 3.2.2).

    Args:
        projections: of queries, keys, values and the output.
        attention: the kind, between projected heads.
        is_causal: position i sees positions up to i.
        global_rows: what marked positions see, if the kind reads marks; None for the same projections, undropped.

    Raises:
        ValueError: a kind that only reads a memory, or causal attention of one that has no steps.
    """

    def __init__(
        self,
        projections: Projections,
        attention: CoreAttention,
        is_causal: bool = False,
        global_rows: GlobalRows | None = None,
    ) -> None:
        super().__init__()
        if attention.crosses_only:
            raise ValueError(
                "`self_attention` must be of a kind by which a sequence reads itself, "
                f"but is {type(attention).__name__}."
            )
        if is_causal and not attention.tells("step"):
            raise ValueError(
                "A decoder's self-attention must be of a kind that goes on from what was written, "
                f"but is {type(attention).__name__}."
            )
        self.projections = projections
        self.attention = attention
        self.is_causal = is_causal
        self.confined_to = attention.confined_to
        self._takes = [name for name in ("marks", "units") if attention.takes(name)]
        self.global_rows = (global_rows or GlobalRows()) if "marks" in self._takes else None

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        q, k, v = self.projections(x)
        mask, marks = context.padding_mask, context.marks
        mixed = self.attention(q, k, v, mask, is_causal=self.is_causal, **self._taken(marks, context.units))
        if marks is not None and self.global_rows is not None:
            mixed = marks.put(mixed, self.global_rows(x, (q, k, v), marks, mask))
        return self.projections.output(mixed)

    def new_state(self) -> State:
        return self.attention.new_state()

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        assert state is not None
        q, k, v = self.projections(x)
        return self.projections.output(self.attention.step(q, k, v, context.padding_mask, state))

    @torch.no_grad()
    def received(
        self, x: Tensor, padding_mask: Tensor | None, marks: Marks | None = None, units: Units | None = None
    ) -> Tensor:
        """Return how much attention each position of ``x`` (B, L, D) receives: (B, L), zero at padding.

        Raises:
            ValueError: the kind cannot tell.
        """
        q, k, _ = self.projections(x)
        received = self.attention.received(q, k, padding_mask, **self._taken(marks, units))
        if marks is not None and self.global_rows is not None:
            received = received + self.global_rows.received(x, q, k, marks, padding_mask)
        return received

    def _taken(self, marks: Marks | None, units: Units | None) -> dict[str, Any]:
        """Return what the kind reads of this, by name."""
        return {name: told for name, told in (("marks", marks), ("units", units)) if name in self._takes}


class CrossAttention(SublayerFunction):
    """Multi-head attention from a sequence to a memory (Vaswani et al. 2017, section 3.2.3).

    Args:
        projections: of queries, keys, values and the output.
        attention: the kind, between projected heads.
        reads: the number of the memory that it reads (from 0).
    """

    confined_to = 1

    def __init__(self, projections: Projections, attention: CoreAttention, reads: int = 0) -> None:
        super().__init__()
        self.projections = projections
        self.attention = attention
        self.reads = reads

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        return self._attend(x, *self._read(context))

    def new_state(self) -> ProjectedMemory:
        return ProjectedMemory()

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        assert isinstance(state, ProjectedMemory)
        if state.keys_values is None:
            k, v, state.mask = self._read(context)
            # Every step reads them: with a head's keys together, a CPU does so nearly twice as fast.
            state.keys_values = k.contiguous(), v.contiguous()
        return self._attend(x, *state.keys_values, state.mask)

    def weights(self, x: Tensor, context: LayerContext) -> Tensor:
        """Return how much ``x`` (B, T, D) attends to its memory (B, K, D) in each head: (B, H, T, K).

        Raises:
            ValueError: the kind cannot tell.
        """
        k, _, mask = self._read(context)
        weights = self.attention.weights(self.projections.queries(x), k, mask)
        memory, padding = context.memories[self.reads]
        if padding is None:
            padding = torch.zeros(memory.shape[:2], dtype=torch.bool, device=x.device)
        return self.attention.spread(weights, padding)

    def _read(self, context: LayerContext) -> tuple[Tensor, Tensor, Tensor | None]:
        return self.attention.keys_values(self.projections, *context.memories[self.reads])

    def _attend(self, x: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        # The hypotheses of a document are further queries to its memory: (BW, T, D) -> (B, WT, D)
        q = self.projections.queries(x.reshape(k.size(0), -1, x.size(-1)))
        return self.projections.output(self.attention(q, k, v, mask)).view_as(x)
