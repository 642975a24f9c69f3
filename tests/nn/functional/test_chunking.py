import torch
from gpu_work import work_of
from hypothesis import given, settings
from hypothesis import strategies as st
from small_parts import ends_after

from pyramidions.nn.block_layout import BlockLayout, lengths_of
from pyramidions.nn.functional.chunking import pad_to_multiple
from pyramidions.nn.functional.masking import flush_right_padding


def test_padding_fills_up_to_the_next_multiple() -> None:
    x = torch.tensor([[1, 2, 3]])
    assert pad_to_multiple(x, 2, dim=1, value=9).tolist() == [[1, 2, 3, 9]]
    assert pad_to_multiple(x, 3, dim=1) is x
    assert pad_to_multiple(torch.ones(3, 5, 2), 4, dim=-2).shape == (3, 8, 2)


def test_blocks_of_pure_padding_are_left_out_but_for_the_first_of_a_document() -> None:
    layout = BlockLayout(ends_after(5, 2), block_size=2)
    tokens = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 0, 0, 0]])
    assert layout.pack(tokens).tolist() == [[1, 2], [3, 4], [5, 0], [6, 7]]
    assert layout.padding_mask.tolist() == [[False, False], [False, False], [False, True], [False, False]]
    assert BlockLayout(ends_after(4, 0), block_size=2).pack(tokens[:, :4]).tolist() == [[1, 2], [3, 4], [6, 7]]
    # A batch shorter than a block is not padded to it.
    assert BlockLayout(ends_after(3, 1), block_size=512).padding_mask.shape == (2, 3)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=4), st.one_of(st.none(), st.integers(1, 25)))
def test_unpacking_undoes_packing_and_lengths_tell_what_the_mask_does(
    lengths: list[int], block_size: int | None
) -> None:
    mask = ends_after(*lengths, width=max(max(lengths), 1))
    x = torch.arange(1.0, mask.numel() * 2 + 1).view(*mask.shape, 2)
    asked, told = BlockLayout(mask, block_size), BlockLayout(mask, block_size, lengths)
    back = asked.unpack(asked.pack(x))
    assert back.shape == x.shape and torch.equal(back[~mask], x[~mask])
    assert told.padding_mask.equal(asked.padding_mask)
    assert (told.attention_mask is None) == (asked.attention_mask is None)
    assert told.pack(x).equal(asked.pack(x)) and told.unpack(told.pack(x)).equal(back)


def test_attention_needs_a_mask_only_where_something_is_padding() -> None:
    assert BlockLayout(ends_after(4, 4), block_size=2).attention_mask is None
    # Blocks of pure padding are left out.
    assert BlockLayout(ends_after(4, 2), block_size=2).attention_mask is None
    padded = BlockLayout(ends_after(4, 3), block_size=2)
    assert padded.attention_mask is padded.padding_mask


def test_who_knows_the_lengths_need_not_ask_the_mask() -> None:
    mask = ends_after(5, 2, 0)
    assert work_of(lambda: BlockLayout(mask, 2, [5, 2, 0]).attention_mask).waits.total() == 0
    assert work_of(lambda: BlockLayout(mask, 2).attention_mask).waits.total() > 0


def test_lengths_are_those_of_masks_that_end_with_padding() -> None:
    assert lengths_of(ends_after(5, 2, 0)) == [5, 2, 0]
    assert lengths_of(ends_after(5, 2, 0)[:, :0]) == [0, 0, 0]
    assert lengths_of(torch.tensor([[False, True, True], [False, True, False]])) is None


def test_padding_on_the_left_moves_behind_the_tokens() -> None:
    tokens = torch.tensor([[1, 1, 5, 6, 2], [4, 5, 6, 7, 2], [8, 2, 1, 1, 1]])
    assert flush_right_padding(tokens, 1).tolist() == [[5, 6, 2, 1, 1], [4, 5, 6, 7, 2], [8, 2, 1, 1, 1]]
