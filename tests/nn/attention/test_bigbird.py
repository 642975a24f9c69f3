"""Windows, ends and random blocks beside dense attention whose mask is made of the kind's own lists of blocks."""

import pytest
import torch
from dense_attention import HEADS, assert_is_dense, some_padding
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import BigBirdAttention
from pyramidions.nn.functional import attention, tiles
from pyramidions.nn.functional.block_lists import BlockLists


def seen(length: int, kind: BigBirdAttention) -> Tensor:
    """Return 0 where a query sees a key, -inf elsewhere: (H, L, L)."""
    lists, size = kind.lists, kind.block_size
    count = -(-length // size)
    allowed = torch.zeros(HEADS, count, count, dtype=torch.bool)
    for head, of_head in enumerate(lists.of_others(torch.tensor([count]), HEADS, torch.arange(count))[0]):
        for row, blocks in enumerate(of_head.tolist()):
            end = row < lists.ends or row >= count - lists.ends
            allowed[head, row, [block for block in blocks if block >= 0]] = True
            allowed[head, row] |= end or count <= lists.full
    whole = allowed.repeat_interleave(size, dim=1).repeat_interleave(size, dim=2)[:, :length, :length]
    return torch.zeros(HEADS, length, length).masked_fill(~whole, -torch.inf)


@settings(deadline=None, max_examples=20)
@given(st.data())
@pytest.mark.parametrize("on_cpu", [True, False])
def test_it_is_dense_attention_to_the_blocks_that_it_lists(on_cpu: bool, data: st.DataObject) -> None:
    kind = BigBirdAttention(
        data.draw(st.integers(1, 8)),
        data.draw(st.sampled_from([1, 3, 5])),
        data.draw(st.integers(0, 2)),
        data.draw(st.integers(0, 3)),
        data.draw(st.integers(-2, 2)),
    )
    padding = some_padding(data, at_the_end=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "computes_in_tiles", lambda x: on_cpu)
        patch.setattr(tiles, "_WEIGHTS", 500)  # a few pieces even of short documents
        patch.setattr(tiles, "_WEIGHTS_OF_GPU", 2000)
        assert_is_dense(kind, lambda length: seen(length, kind), padding, alone=True)


@for_each("length", [1, 63, 65, 704, 705, 901])
def test_odd_lengths_and_a_single_token_with_the_default_options(length: int) -> None:
    kind = BigBirdAttention()
    padding = torch.arange(901) >= torch.tensor([[length], [901]])
    assert_is_dense(kind, lambda length: seen(length, kind), padding, alone=True)


def test_padding_within_a_document_is_never_seen() -> None:
    kind, padding = BigBirdAttention(3, 1, 1, 1), torch.zeros(1, 40, dtype=torch.bool)
    padding[:, [0, 1, 2, 7, 20]] = True
    assert_is_dense(kind, lambda length: seen(length, kind), padding)


@settings(deadline=None, max_examples=30)
@given(
    window=st.sampled_from([1, 3, 5]),
    ends=st.integers(0, 3),
    random=st.integers(0, 4),
    counts=st.lists(st.integers(1, 40), min_size=1, max_size=4),
)
def test_a_list_has_window_ends_and_random_blocks_each_once(
    window: int, ends: int, random: int, counts: list[int]
) -> None:
    lists = BlockLists(window, ends, random, seed=1)
    found = lists.of_others(torch.tensor(counts), HEADS, torch.arange(40))
    for document, count in enumerate(counts):
        near_ends = {*range(min(ends, count)), *range(max(0, count - ends), count)}
        for row in range(count):
            fixed = near_ends | {block for block in range(count) if abs(block - row) <= window // 2}
            for head in range(HEADS):
                blocks = [block for block in found[document, head, row].tolist() if block != -1]
                assert len(blocks) == len(set(blocks)) == min(count, len(fixed) + random)
                assert fixed <= set(blocks) <= set(range(count))
    first = lists.of_first(torch.tensor(counts), HEADS)
    for document, count in enumerate(counts):
        if count <= lists.full:
            assert all(sorted(b for b in row.tolist() if b >= 0) == list(range(count)) for row in first[document, 0])
        else:
            here = found[document, :, : lists.full]
            assert first[document, ..., : here.size(2)].equal(here)
            assert first[document, ..., here.size(2) :].eq(-1).all()


def test_random_blocks_follow_from_the_seed_the_head_and_the_length_alone() -> None:
    def drawn(counts: list[int], seed: int = 1) -> Tensor:
        return BlockLists(3, 1, 3, seed).of_others(torch.tensor(counts), 4, torch.arange(30))[..., -3:]

    together = drawn([30, 12, 29])
    assert together[:1].equal(drawn([30])) and together[2:].equal(drawn([29]))
    assert not together[0].equal(together[2]) and not together.equal(drawn([30, 12, 29], seed=2))
    assert len({tuple(head.flatten().tolist()) for head in together[0]}) == 4


def test_all_blocks_have_the_same_chance() -> None:
    heads = 4000
    (found,) = BlockLists(3, 1, 3, 1).of_others(torch.tensor([14]), heads, torch.tensor([5]))
    times = torch.bincount(found[:, 0, -3:].flatten(), minlength=14)
    others = [1, 2, 3, 7, 8, 9, 10, 11, 12]
    assert times.sum() == times[others].sum() == 3 * heads
    # five standard deviations of a binomial with p = 1/3
    assert (times[others] - heads / 3).abs().max() < 5 * (heads * 2 / 9) ** 0.5


def test_training_sees_the_same_blocks_as_evaluation() -> None:
    q, k, v = torch.randn(3, 1, HEADS, 60, 4)
    kind = BigBirdAttention(3, 1, 1, 1)
    assert kind.train()(q, k, v).equal(kind.eval()(q, k, v))
