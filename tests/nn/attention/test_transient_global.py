"""Windows, and sums of blocks, as LongT5 has them."""

import torch
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


def test_each_position_sees_its_window_and_the_sum_of_each_block() -> None:
    # 18 positions: the last two count in the fourth block.
    for length, options in ((18, {}), (16, {}), (3, {}), (18, {"block_size": 0})):
        function, x = sublayer(**options), torch.randn(length, 8, dtype=torch.double)
        weights = [p for p in function.parameters() if p.requires_grad]
        found, expected = function(x[None], LayerContext())[0], naive(function, x)
        torch.testing.assert_close(found, expected)
        of_both = [
            torch.autograd.grad(out.square().sum(), weights, allow_unused=True, materialize_grads=True)
            for out in (found, expected)
        ]
        torch.testing.assert_close(*of_both)


def test_blocks_end_with_each_document_of_a_batch() -> None:
    function, x = sublayer(), torch.randn(3, 18, 8, dtype=torch.double)
    lengths = [18, 9, 3]
    padding = torch.arange(18) >= torch.tensor(lengths)[:, None]
    found = function(x, LayerContext(padding))
    for document, length, text in zip(found, lengths, x, strict=True):
        torch.testing.assert_close(document[:length], naive(function, text[:length]))


def test_all_weights_have_gradients_where_texts_are_shorter_than_a_block() -> None:
    function, x = sublayer(), torch.randn(1, 3, 8, dtype=torch.double)
    function(x, LayerContext()).square().sum().backward()
    assert all(weight.grad is not None for weight in function.parameters() if weight.requires_grad)
