"""What attention need not mask."""

import torch
from small_parts import DIM, ends_after, vectors

from pyramidions.nn.sequence import Sequence


def test_attention_needs_no_mask_where_all_is_known_to_be_real() -> None:
    x = vectors(2, 3, DIM)
    assert Sequence(x, ends_after(3, 3), lengths=[3, 3]).attention_mask is None


def test_attention_needs_the_mask_where_something_is_padding_or_nothing_is_known() -> None:
    x = vectors(2, 3, DIM)
    for mask, lengths in ((ends_after(3, 2), [3, 2]), (ends_after(3, 2), None), (ends_after(3, 3), None)):
        assert Sequence(x, mask, lengths=lengths).attention_mask is mask


def test_of_no_position_nothing_is_masked() -> None:
    assert Sequence(torch.empty(2, 0, DIM), torch.empty(2, 0, dtype=torch.bool), lengths=[0, 0]).attention_mask is None
