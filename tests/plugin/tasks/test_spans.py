"""Span corruption, and the dataset of corrupted passages."""

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from hypothesis import given, settings
from hypothesis import strategies as st

from pyramidions.plugin.tasks.datasets import DrawnPairs
from pyramidions.plugin.tasks.span_denoising import SENTINEL, Corruption, SpanNoise

T5 = SpanNoise(0.15, 3.0)


class Texts(list[torch.Tensor]):
    """Token tensors that end in `</s>`."""

    @property
    def sizes(self) -> np.ndarray:
        return np.array([len(text) for text in self])


def put_back(source: list[int], target: list[int]) -> list[int]:
    """Return the text, given what is left of it and its missing spans."""
    spans: list[list[int]] = []
    for token in target:
        if token == SENTINEL:
            spans.append([])
        else:
            spans[-1].append(token)
    missing = iter(spans)
    return [token for each in source for token in (next(missing) if each == SENTINEL else [each])]


def dataset(texts: Texts, longest: int = 20, is_training: bool = True, prefix: tuple[int, ...] = ()) -> DrawnPairs:
    return DrawnPairs(Corruption(texts, T5, longest, 1, prefix), Dictionary(), is_training)


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 200), st.floats(0.01, 0.99), st.floats(1, 20), st.integers(0, 99))
def test_source_and_target_hold_the_text_and_have_the_sizes_that_were_said(
    length: int, share: float, mean: float, seed: int
) -> None:
    noise, text = SpanNoise(share, mean), np.arange(10, 10 + length)
    source, target = noise.corrupt(text, np.random.default_rng(seed))
    assert put_back(source.tolist(), target.tolist()) == text.tolist()
    assert (len(source), len(target)) == noise.sizes(length)
    assert source[0] == 10 and target[0] == SENTINEL
    # No two spans touch, and none is empty.
    assert not ((source[:-1] == SENTINEL) & (source[1:] == SENTINEL)).any()
    assert not ((target[:-1] == SENTINEL) & (target[1:] == SENTINEL)).any() and target[-1] != SENTINEL


def test_numbered_sentinels_are_the_last_pieces_from_the_last_one_on() -> None:
    text = np.arange(10, 18)
    same, spans = SpanNoise(0.5, 2.0).corrupt(text, np.random.default_rng(3))
    source, target = SpanNoise(0.5, 2.0, pieces=100).corrupt(text, np.random.default_rng(3))
    assert source.tolist() == [10, 11, 12, 99, 14, 98] and same.tolist() == [10, 11, 12, 3, 14, 3]
    numbers = iter((99, 98))
    assert target.tolist() == [next(numbers) if token == SENTINEL else token for token in spans.tolist()]


def test_spans_to_copy_stay_in_the_text_between_two_sentinels() -> None:
    text = np.arange(10, 18)
    missing, spans = SpanNoise(0.5, 2.0).corrupt(text, np.random.default_rng(3))
    noise = SpanNoise(0.5, 2.0, copies=True)
    source, target = noise.corrupt(text, np.random.default_rng(3))
    assert missing.tolist() == [10, 11, 12, 3, 14, 3]
    assert source.tolist() == [10, 11, 12, 3, 13, 3, 14, 3, 15, 16, 17, 3]
    assert target.tolist() == spans.tolist() == [3, 13, 3, 15, 16, 17]
    assert (len(source), len(target)) == noise.sizes(8)


def test_568_tokens_become_the_512_and_114_of_t5() -> None:
    # With the end of each text (Raffel et al. 2020, section 3.1.4, and their code).
    assert T5.longest(511, 255) == 568
    assert T5.sizes(568) == (511, 113)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 300), st.integers(1, 300), st.floats(0.01, 0.99), st.floats(1, 20))
def test_the_longest_passage_fits_and_one_more_token_does_not(
    source: int, target: int, share: float, mean: float
) -> None:
    noise = SpanNoise(share, mean)
    longest = noise.longest(source, target)
    if longest:
        assert noise.sizes(longest)[0] <= source and noise.sizes(longest)[1] <= target
    further = noise.sizes(max(longest + 1, 2))
    assert further[0] > source or further[1] > target


def test_every_way_to_cut_spans_is_equally_likely() -> None:
    random, found = np.random.default_rng(0), {}
    for _ in range(3000):
        source, _ = SpanNoise(0.5, 2.0).corrupt(np.arange(10, 18), random)
        found[tuple(source.tolist())] = found.get(tuple(source.tolist()), 0) + 1
    # Four tokens in two spans and four between them: three ways each.
    assert len(found) == 9
    assert all(abs(count - 3000 / 9) < 5 * (3000 / 9) ** 0.5 for count in found.values())


def test_sizes_are_those_of_the_items_with_prefix_and_end() -> None:
    made = dataset(Texts([torch.tensor([7, 2]), torch.arange(10, 22), torch.arange(10, 90)]), prefix=(0,))
    for index in range(3):
        item = made[index]
        assert len(item["source"]) == made.src.num_tokens(index) and len(item["target"]) == made.tgt.size(index)
        assert item["source"][0] == item["target"][0] == 0 and item["source"][-1] == item["target"][-1] == 2
    assert made[0]["source"].tolist() == [0, 7, 2] and made[0]["target"].tolist() == [0, 2]


def test_each_epoch_of_training_draws_anew_and_a_run_that_goes_on_draws_the_same() -> None:
    texts = Texts([torch.cat([torch.arange(10, 200), torch.tensor([2])])])
    made, resumed = dataset(texts), dataset(texts)
    first = made[0]["source"].tolist()
    assert made[0]["source"].tolist() == first
    made.set_epoch(2)
    second = made[0]["source"].tolist()
    resumed.set_epoch(2)
    assert first != second and resumed[0]["source"].tolist() == second


def test_validation_is_the_same_in_all_epochs() -> None:
    made = dataset(Texts([torch.cat([torch.arange(10, 200), torch.tensor([2])])]), is_training=False)
    first = made[0]["source"].tolist()
    made.set_epoch(2)
    assert made[0]["source"].tolist() == first


@pytest.mark.parametrize("index", [0, 1])
def test_a_batch_is_padded_on_the_right_and_the_decoder_reads_the_target_behind_its_end(index: int) -> None:
    made = dataset(Texts([torch.cat([torch.arange(10, n), torch.tensor([2])]) for n in (20, 14)]))
    batch = made.collater([made[0], made[1]])
    row = batch["id"].tolist().index(index)
    target = made[index]["target"].tolist()
    assert batch["target"][row, : len(target)].tolist() == target
    assert batch["net_input"]["prev_output_tokens"][row, : len(target)].tolist() == [2, *target[:-1]]
    assert (
        batch["net_input"]["src_tokens"][row, : len(made[index]["source"])].tolist() == made[index]["source"].tolist()
    )
