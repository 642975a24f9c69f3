"""Sliding-window attention that learns from distances."""

from typing import ClassVar

from pyramidions.base.arguments import Count, CountOrZero
from pyramidions.nn.attention.core_attention import ATTENTION
from pyramidions.nn.attention.relative import Distances, RelativeAttention
from pyramidions.nn.functional.interleaving import check_dilation
from pyramidions.nn.options import Probability, Window


@ATTENTION.register("relative_window")
class RelativeWindowAttention(RelativeAttention):
    """`relative` within a window, as in Longformer's models of characters (Beltagy et al. 2020, section 4.1).

    Time and memory are linear in the length. Where it is causal, positions see themselves and the half of their window
    that stands before them. Steps keep all keys.

    Args:
        embed_dim: D, even.
        num_heads: H.
        distances: what the layers of a model share; without, this one has its own.
        window: positions on both sides together, half of them on each.
        dilation: dilated heads see as many positions, so far apart from each other.
        dilated_heads: how many of the last heads are dilated.
        dropout: probability of dropping an attention weight while training.
        position_dropout: that of dropping a value of a sinusoid.

    Raises:
        ValueError: a dilation without heads, or heads without a dilation.
    """

    wide: ClassVar = {"window": 64}
    narrow: ClassVar = {"window": 4, "dilation": 2, "dilated_heads": 1}

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        distances: Distances | None = None,
        window: Window = 512,
        dilation: Count = 1,
        dilated_heads: CountOrZero = 0,
        dropout: Probability = 0.0,
        position_dropout: Probability = 0.0,
    ) -> None:
        super().__init__(embed_dim, num_heads, distances, dropout, position_dropout)
        check_dilation(dilation, dilated_heads)
        self.side = window // 2
        self.dilation = dilation
        self.dilated_heads = dilated_heads
