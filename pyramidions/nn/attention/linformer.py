"""Linformer: keys and values are projected along the sequence, to a fixed number of them."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.functional.attention import scaled_dot_product_attention
from pyramidions.nn.options import Length, Probability
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext


@ATTENTION.register("linformer")
class LinformerAttention(CoreAttention):
    """softmax(Q (EK)^T / sqrt(E)) (FV): attention to a learned low-rank summary (Wang et al. 2020, equation 7).

    All heads of a layer share the projections. A column belongs to a position, so that a shorter document uses the
    first ones; padding is zero before it is projected. A compressed key mixes all positions: the kind cannot be causal,
    cannot tell what a position received, and does not read another sequence, whose length its weights do not know.

    Args:
        compressed: rows of E and F: to how many keys and values a document is compressed.
        shared: E and F are one matrix.
    """

    supports = frozenset({Feature.ITSELF})
    narrow: ClassVar = {"compressed": 3}
    is_exact = False

    def __init__(
        self, max_length: int | None, compressed: Length = 256, shared: bool = True, dropout: Probability = 0.0
    ) -> None:
        super().__init__()
        if max_length is None:
            raise ValueError("Linformer needs `max_length`, to which its weights are tied, but it is not known here.")
        self.longest = max_length
        self.dropout = dropout
        self.compress_keys = nn.Parameter(torch.empty(compressed, max_length))
        self.compress_values = None if shared else nn.Parameter(torch.empty(compressed, max_length))
        for weight in self.parameters():
            # The keys of a document of full length keep their variance.
            nn.init.normal_(weight, std=max_length**-0.5)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        if k.size(2) > self.compress_keys.size(1):
            raise ValueError(
                f"Linformer's weights are for at most {self.compress_keys.size(1)} positions, but read {k.size(2)}."
            )
        if (mask := context.padding_mask) is not None:
            k, v = (x.masked_fill(mask[:, None, :, None], 0.0) for x in (k, v))
        of_values = self.compress_keys if self.compress_values is None else self.compress_values
        keys, values = _compress(k, self.compress_keys), _compress(v, of_values)
        return scaled_dot_product_attention(q, keys, values, dropout=self.dropped)


def _compress(x: Tensor, weight: Tensor) -> Tensor:
    # (B, H, L, E) -> (B, H, E, L) -> (B, H, E, K) -> (B, H, K, E): one matrix product for all heads, whose gradient
    # needs no sum; and contiguous, as fused kernels of attention want it.
    return F.linear(x.mT, weight[:, : x.size(2)]).mT.contiguous()
