"""Attention within staggered blocks, and to global positions."""

import pytest
import torch
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import BlockGlobalAttention
from pyramidions.nn.marks import Marks
from pyramidions.nn.sublayer import LayerContext


def by_definition(q: Tensor, k: Tensor, v: Tensor, block: Tensor, marked: Tensor, padding: Tensor) -> Tensor:
    """Attend from each position to its block and to marked positions, in one matrix."""
    seen = (block[:, None] == block) | marked[:, None]
    seen = seen & ~padding[:, None]
    scores = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(~seen[:, None], -torch.inf)
    return scores.softmax(dim=-1) @ v


@for_each(("layer", "starts"), [(0, [0, 8, 16]), (1, [0, 4, 12, 20]), (2, [0, 8, 16])])
@for_each("appended", [0, 3])
def test_a_position_sees_its_block_and_the_marked_ones(layer: int, starts: list[int], appended: int) -> None:
    torch.manual_seed(0)
    length = 22
    q, k, v = torch.randn(3, 2, 4, length + appended, 6, dtype=torch.float64)
    padding = torch.zeros(2, length, dtype=torch.bool)
    padding[1, 13:] = True
    own = torch.zeros_like(padding)
    own[:, 5] = True
    marks = Marks(own, 1)
    if appended:
        marks, padding = Marks.with_appended(marks, padding, appended), torch.nn.functional.pad(padding, (0, appended))
    block = torch.bucketize(torch.arange(length + appended), torch.tensor(starts), right=True)
    attention = BlockGlobalAttention(8, layer=layer)
    found = attention(q, k, v, LayerContext(padding, marks=marks))
    expected = by_definition(q, k, v, block, marks.marked, padding)
    # What marked positions and padding see is not this kind's.
    real = ~padding & ~marks.marked
    torch.testing.assert_close(found.transpose(1, 2)[real], expected.transpose(1, 2)[real])


@for_each(("layer", "starts"), [(0, [0, 4, 8]), (1, [0, 2, 6, 10])])
@for_each("appended", [0, 3])
@for_each("real", [10, 5])
def test_what_positions_receive_comes_from_their_block_and_goes_to_the_marked_ones(
    layer: int, starts: list[int], appended: int, real: int
) -> None:
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 2, 10 + appended, 6, dtype=torch.float64)
    padding = torch.arange(10)[None] >= real
    marked = torch.arange(10)[None] == 1
    marks = Marks(marked, 1)
    if appended:
        marks, padding = Marks.with_appended(marks, padding, appended), torch.nn.functional.pad(padding, (0, appended))
    found = BlockGlobalAttention(4, layer=layer).received(q, k, LayerContext(padding, marks=marks))
    block = torch.bucketize(torch.arange(10 + appended), torch.tensor(starts), right=True)
    seen = ((block[:, None] == block) | marks.marked) & ~padding
    weights = (q @ k.mT / 6**0.5).masked_fill(~seen, -torch.inf).softmax(dim=-1)
    senders = ~marks.marked[0] & ~padding[0]
    expected = weights[:, :, senders].sum(dim=(1, 2))
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-6)
    # Each of the others gives one in each of two heads.
    assert found.sum() == pytest.approx(2 * int(senders.sum()))
