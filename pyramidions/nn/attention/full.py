"""Full attention: every query sees every key."""

import torch
from torch import Tensor

from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.state import KeysValues
from pyramidions.nn.functional.attention import scaled_dot_product_attention
from pyramidions.nn.functional.masking import attendable, padding_of
from pyramidions.nn.options import Probability
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, State


@ATTENTION.register("full")
class FullAttention(CoreAttention):
    """Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1)."""

    supports = frozenset(Feature) - {Feature.MARKS, Feature.UNITS, Feature.DISTANCES}
    _QUERIES = 256  # rows of the attention matrix that are held at a time

    def __init__(self, dropout: Probability = 0.0) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        mask, is_causal, dropout = context.padding_mask, context.is_causal, self.dropped
        if mask is None and (not is_causal or q.size(2) == k.size(2)):
            return scaled_dot_product_attention(q, k, v, dropout=dropout, is_causal=is_causal)
        if mask is None or mask.dtype == torch.bool:
            mask = attendable(mask, is_causal, q.size(2), k.size(2), q.device)
        return scaled_dot_product_attention(q, k, v, mask, dropout)

    def new_state(self) -> State:
        return KeysValues()

    def step(self, q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None, state: State) -> Tensor:
        assert isinstance(state, KeysValues)
        # A document's hypotheses are further queries to its keys and values.
        return self(q, *state.extend(k, v), LayerContext(blocked))

    def across(self) -> CoreAttention:
        return self

    def received(
        self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT, left_out: Tensor | None = None
    ) -> Tensor:
        """Return what `CoreAttention.received` does, of all queries but those ``left_out`` (B, Lq), or padding."""
        padding_mask = padding_of(k, context.padding_mask)
        left_out = padding_mask if left_out is None else left_out
        total = torch.zeros(padding_mask.shape, dtype=torch.float32, device=k.device)
        for rows, padded in zip(q.split(self._QUERIES, 2), left_out.split(self._QUERIES, 1), strict=True):
            weights = self.weights(rows, k, LayerContext(padding_mask))
            total += weights.masked_fill(padded[:, None, :, None], 0.0).sum(dim=(1, 2))
        return total.masked_fill(padding_mask, 0.0)

    def weights(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        # (B, H, Lq, E) @ (B, H, E, Lk) -> (B, H, Lq, Lk)
        logits = (q @ k.transpose(-1, -2)).float() / q.size(-1) ** 0.5
        mask = context.padding_mask
        if mask is not None and mask.dtype != torch.bool:
            return (logits + mask).softmax(dim=-1)
        mask = attendable(mask, False, q.size(2), k.size(2), q.device)
        return (logits if mask is None else logits.masked_fill(~mask, -torch.inf)).softmax(dim=-1)
