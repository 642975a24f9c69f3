"""What each position received, against the whole attention matrix."""

import pytest
import torch
from torch import Tensor

from pyramidions.nn.attention import ATTENTION, EfficientAttention, Feature, supporting
from pyramidions.nn.sublayer import LayerContext

telling = pytest.mark.parametrize("kind", supporting(Feature.RECEIVED))


def column_sums(q: Tensor, k: Tensor, block: int) -> Tensor:
    """Of one document without padding: (H, L, E) x 2 -> (L,)."""
    blocks = torch.arange(q.size(1)) // block
    apart = blocks[:, None] != blocks
    return (q @ k.transpose(-1, -2) / q.size(-1) ** 0.5).masked_fill(apart, -torch.inf).softmax(-1).sum((0, 1))


@telling
def test_it_is_the_sum_of_the_columns_over_heads_and_real_queries(kind: str) -> None:
    options, block = {
        "adaptive_span": ({"max_window": 2000}, 1000),
        "block_global": ({"block_size": 1200}, 1000),
        "blockwise": ({"block_size": 4}, 4),
        "segments": ({"segment_length": 4}, 4),
        "sliding_window": ({"window": 1200}, 1000),
        "strided": ({"window": 1200}, 1000),
        "sinkhorn": ({"bucket_size": 600}, 1000),
    }.get(kind, ({}, 1000))
    lengths = [600, 13, 1]
    q, k = torch.randn(2, 3, 2, 600, 8)
    mask = torch.arange(600) >= torch.tensor(lengths)[:, None]
    got = ATTENTION.build(kind, options, num_heads=2).received(q, k, LayerContext(mask))
    assert got[mask].eq(0).all()
    for row, length in enumerate(lengths):
        expected = column_sums(q[row, :, :length], k[row, :, :length], block)
        torch.testing.assert_close(got[row, :length], expected)


def test_a_kind_that_cannot_tell_says_so() -> None:
    with pytest.raises(ValueError, match="EfficientAttention cannot tell how much attention a position received."):
        EfficientAttention().received(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4))
