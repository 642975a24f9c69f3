"""Biases for buckets of distances, as T5 has them."""

import pytest
import torch
from torch import Tensor

from pyramidions.nn.attention import BucketedAttention, DistanceBiases
from pyramidions.nn.sublayer import LayerContext


def buckets(distances: list[int], is_causal: bool) -> list[int]:
    biases = DistanceBiases(1, 8, 16)
    biases.table.weight.data = torch.arange(8.0)[:, None]
    return biases(torch.tensor(distances), is_causal)[0].int().tolist()


def test_near_distances_have_buckets_of_their_own_and_far_ones_share() -> None:
    # Distances to earlier positions are negative. Of 8 buckets 4 are for each side, and 2 of these for 0 and 1.
    assert buckets([-99, -16, -6, -5, -2, -1, 0], False) == [3, 3, 3, 2, 2, 1, 0]
    assert buckets([1, 2, 5, 6, 16, 99], False) == [5, 6, 6, 7, 7, 7]


def test_causal_attention_has_all_buckets_for_earlier_positions() -> None:
    assert buckets([-99, -16, -11, -8, -5, -4, -3, -1, 0, 3], True) == [7, 7, 6, 6, 4, 4, 3, 1, 0, 0]


def naive(attention: BucketedAttention, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, is_causal: bool) -> Tensor:
    length = q.size(2)
    distance = torch.arange(length)[None] - torch.arange(length)[:, None]
    bias = attention.biases(distance.flatten(), is_causal).view(-1, length, length)
    scores = q @ k.mT / q.size(-1) ** 0.5 + bias
    scores = scores.masked_fill(hidden[:, None, None], -torch.inf)
    return (scores.masked_fill(distance > 0, -torch.inf) if is_causal else scores).softmax(-1) @ v


@pytest.mark.parametrize("is_causal", [False, True])
def test_it_is_full_attention_with_the_biases(is_causal: bool) -> None:
    torch.manual_seed(0)
    attention = BucketedAttention(num_heads=2, buckets=8, furthest=16).double()
    attention.biases.table.weight.data.normal_()
    q, k, v = torch.randn(3, 2, 2, 40, 4, dtype=torch.double)
    hidden = torch.arange(40) >= torch.tensor([[40], [31]])
    found = attention(q, k, v, LayerContext(hidden, is_causal=is_causal))
    expected = naive(attention, q, k, v, hidden, is_causal)
    real = ~hidden[:, None, :, None].expand_as(found)
    torch.testing.assert_close(found[real], expected[real])
    table = attention.biases.table.weight
    grads = (torch.autograd.grad(x[real].square().sum(), table)[0] for x in (found, expected))
    torch.testing.assert_close(*grads)


def test_steps_give_what_one_pass_gives() -> None:
    torch.manual_seed(0)
    attention = BucketedAttention(num_heads=2, buckets=8, furthest=16)
    attention.biases.table.weight.data.normal_()
    q, k, v = torch.randn(3, 1, 2, 30, 4)
    whole, state = attention(q, k, v, LayerContext(is_causal=True)), attention.new_state()
    steps = [attention.step(*(x[:, :, [n]] for x in (q, k, v)), None, state) for n in range(30)]
    torch.testing.assert_close(torch.cat(steps, dim=2), whole)
