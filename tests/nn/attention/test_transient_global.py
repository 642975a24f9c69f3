"""Windows, and sums of blocks, as LongT5 has them."""

import pytest
import torch
from small_parts import ends_after
from torch import Tensor

from pyramidions.nn.attention import SelfAttention, TransientGlobalAttention
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import LayerContext


def sublayer(**options: int) -> SelfAttention:
    torch.manual_seed(0)
    given = {"window": 6, "block_size": 4, "buckets": 8, "furthest": 16, **options}
    attention = TransientGlobalAttention(8, 2, **given)
    for biases in (attention.biases, attention.block_biases):
        if biases is not None:
            biases.table.weight.data.normal_()
    return SelfAttention(DenseProjections(8, 2), attention).double()


def naive(function: SelfAttention, x: Tensor) -> Tensor:
    """Attend from one document without padding, (L, D): each key, near or a block, is a row of its own."""
    attention, length = function.attention, len(x)
    assert isinstance(attention, TransientGlobalAttention)
    size, whole = attention.block_size, length // attention.block_size if attention.block_size else 0
    block = (torch.arange(length) // size).clamp(max=whole - 1) if whole else torch.zeros(length)
    rows = [x]
    if whole:
        rows.append(attention.norm(torch.stack([x[block == n].sum(dim=0) for n in range(whole)])))
    q, (k, v) = function.projections.queries(x[None]), function.projections.keys_values(torch.cat(rows)[None])
    distance = torch.arange(length)[None] - torch.arange(length)[:, None]
    near = attention.biases(distance.flatten(), False).unflatten(1, (length, length))
    bias = near.masked_fill(distance.abs() > attention.side, -torch.inf)
    if whole:
        by_block = torch.arange(whole)[None] - block[:, None]
        far = attention.block_biases(by_block.flatten(), False).unflatten(1, (length, whole))
        bias = torch.cat([bias, far], dim=2)
    return function.projections.output(((q @ k.mT / 2 + bias).softmax(-1)) @ v)[0]


@pytest.mark.parametrize("options", [{}, {"block_size": 0}])
def test_each_position_sees_its_window_and_the_sum_of_each_block_of_its_document(options: dict[str, int]) -> None:
    # Of 18 positions the last two count in the fourth block; three positions are less than a block.
    function, lengths = sublayer(**options), (18, 16, 9, 3)
    x, padding = torch.randn(4, 18, 8, dtype=torch.double), ends_after(*lengths)
    weights = [p for p in function.parameters() if p.requires_grad]
    for row, length in enumerate(lengths):
        found, expected = function(x, LayerContext(padding))[row, :length], naive(function, x[row, :length])
        torch.testing.assert_close(found, expected)
        # Each weight has one, also where a text is shorter than a block.
        ours = torch.autograd.grad(found.square().sum(), weights)
        theirs = torch.autograd.grad(expected.square().sum(), weights, allow_unused=True, materialize_grads=True)
        torch.testing.assert_close(ours, theirs)
