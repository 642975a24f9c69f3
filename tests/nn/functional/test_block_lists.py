"""Lists of the blocks that a block sees: window, ends and random ones."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyramidions.nn.attention.bigbird import BlockLists

HEADS = 3


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
