"""How much each query attends to each key, as the kinds tell it that can."""

import pytest
import torch

from pyramidions.nn.attention import ATTENTION, EfficientAttention, Feature, supporting
from pyramidions.nn.sublayer import LayerContext

telling = pytest.mark.parametrize("kind", supporting(Feature.WEIGHTS))


@telling
def test_the_values_mixed_by_the_weights_are_what_attention_returns(kind: str) -> None:
    q, k, v = torch.randn(2, 4, 5, 4), torch.randn(2, 4, 9, 4), torch.randn(2, 4, 9, 4)
    mask = torch.arange(9) >= torch.tensor([[9], [6]])
    attention = ATTENTION.build(kind, {}, dropout=0.5, num_heads=4).eval()
    weights = attention.weights(q, k, LayerContext(mask))
    torch.testing.assert_close(weights @ v, attention(q, k, v, LayerContext(mask)))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 5))
    assert weights[1, :, :, 6:].eq(0).all()


@telling
def test_weights_in_half_precision_still_sum_to_one(kind: str) -> None:
    q, k = torch.randn(2, 1, 2, 700, 8).bfloat16()
    weights = ATTENTION.build(kind, {}, num_heads=4).weights(q, k)
    assert weights.dtype == torch.float32
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2, 700))


def test_a_kind_that_cannot_tell_says_so() -> None:
    with pytest.raises(ValueError, match="EfficientAttention cannot tell how much a query attends to each key."):
        EfficientAttention().weights(torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 2, 4))
