"""Windows and strides beside dense attention with their union as its mask."""

import pytest
import torch
from dense_attention import HEADS, assert_is_dense, some_padding
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import StridedAttention
from pyramidions.nn.functional import attention, tiles


def seen(length: int, kind: StridedAttention) -> Tensor:
    """Return 0 where a query sees a key, -inf elsewhere: (H, L, L)."""
    distance = torch.arange(length)[:, None] - torch.arange(length)
    near, far = distance.abs() <= kind.side, distance % kind.stride == 0
    heads = [near, near, far] if kind.split_heads else [near | far] * HEADS
    return torch.zeros(HEADS, length, length).masked_fill(~torch.stack(heads), -torch.inf)


@settings(deadline=None, max_examples=20)
@given(st.data())
@pytest.mark.parametrize("on_cpu", [True, False])
def test_it_is_dense_attention_to_the_union_of_window_and_stride(on_cpu: bool, data: st.DataObject) -> None:
    kind = StridedAttention(data.draw(st.integers(1, 20)), 2 * data.draw(st.integers(1, 12)), data.draw(st.booleans()))
    padding = some_padding(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "computes_in_tiles", lambda x: on_cpu)
        # A few pieces even of short documents.
        patch.setattr(tiles, "_WEIGHTS", 500)
        patch.setattr(tiles, "_ROWS", 16)
        assert_is_dense(kind, lambda length: seen(length, kind), padding)


@for_each("split_heads", [False, True])
@for_each("length", [1, 2, 31, 33, 65, 97, 200])
def test_odd_lengths_and_a_single_token_with_the_default_options(length: int, split_heads: bool) -> None:
    kind = StridedAttention(split_heads=split_heads)
    assert_is_dense(kind, lambda length: seen(length, kind), torch.zeros(1, length, dtype=torch.bool))
