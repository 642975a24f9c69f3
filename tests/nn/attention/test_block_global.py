"""Attention within staggered blocks, and to global positions."""

import pytest
import torch

from pyramidions.nn.attention import BlockGlobalAttention
from pyramidions.nn.marks import Marks
from pyramidions.nn.sublayer import LayerContext
from tests.small_parts import ends_after


@pytest.mark.parametrize(
    ("layer", "starts", "appended"),
    [(0, [0, 8, 16], 0), (1, [0, 4, 12, 20], 0), (1, [0, 4, 12, 20], 3), (2, [0, 8, 16], 3)],
)
def test_a_position_sees_its_block_and_the_marked_ones(layer: int, starts: list[int], appended: int) -> None:
    torch.manual_seed(0)
    length = 22
    q, k, v = torch.randn(3, 2, 4, length + appended, 6, dtype=torch.float64)
    padding = ends_after(length, 13)
    marks = Marks((torch.arange(length) == 5).expand(2, -1), 1)
    if appended:
        marks, padding = Marks.with_appended(marks, padding, appended), torch.nn.functional.pad(padding, (0, appended))
    block = torch.bucketize(torch.arange(length + appended), torch.tensor(starts), right=True)
    attention, context = BlockGlobalAttention(8, layer=layer), LayerContext(padding, marks=marks)
    seen = ((block[:, None] == block) | marks.marked[:, None]) & ~padding[:, None]
    weights = (q @ k.mT / 6**0.5).masked_fill(~seen[:, None], -torch.inf).softmax(dim=-1)
    # What marked positions and padding see is not this kind's.
    real = ~padding & ~marks.marked
    torch.testing.assert_close(attention(q, k, v, context).transpose(1, 2)[real], (weights @ v).transpose(1, 2)[real])
    expected = weights.masked_fill(~real[:, None, :, None], 0.0).sum(dim=(1, 2))
    received = attention.received(q, k, context)
    torch.testing.assert_close(received, expected.float(), rtol=1e-5, atol=1e-6)
    # Each of the others gives one in each of four heads.
    assert received.sum() == pytest.approx(4 * int(real.sum()))
