"""Pairs that are drawn: corrupted spans, toy problems, and documents to copy."""

from typing import Any

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from hypothesis import given, settings
from hypothesis import strategies as st

from pyramidions.plugin.tasks.config import ToySequencesConfig
from pyramidions.plugin.tasks.datasets import DrawnPairs
from pyramidions.plugin.tasks.long_document_summarization import copying_batch, spans_to_copy
from pyramidions.plugin.tasks.span_denoising import Corruption, SpanNoise
from pyramidions.plugin.tasks.toy_sequences import PROBLEMS, SYMBOLS, ToySequencesTask, addition, copying

T5 = SpanNoise(0.15, 3.0)
SENTINEL = 3


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


def test_sentinels_may_have_numbers_and_spans_to_copy_stay_between_two() -> None:
    def corrupted(**options: Any) -> list[list[int]]:
        noise = SpanNoise(0.5, 2.0, **options)
        sides = noise.corrupt(np.arange(10, 18), np.random.default_rng(3))
        assert tuple(map(len, sides)) == noise.sizes(8)
        return [side.tolist() for side in sides]

    spans = [3, 13, 3, 15, 16, 17]
    assert corrupted() == [[10, 11, 12, 3, 14, 3], spans]
    # The last pieces, from the last one on.
    assert corrupted(sentinels=(99, 98)) == [[10, 11, 12, 99, 14, 98], [99, 13, 98, 15, 16, 17]]
    assert corrupted(copies=True) == [[10, 11, 12, 3, 13, 3, 14, 3, 15, 16, 17, 3], spans]


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


def test_a_batch_is_padded_on_the_right_and_the_decoder_reads_the_target_behind_its_end() -> None:
    made = dataset(Texts([torch.cat([torch.arange(10, n), torch.tensor([2])]) for n in (20, 14)]))
    batch = made.collater([made[0], made[1]])
    for row, index in enumerate(batch["id"].tolist()):
        source, target = (made[index][side].tolist() for side in ("source", "target"))
        assert batch["target"][row, : len(target)].tolist() == target
        assert batch["net_input"]["prev_output_tokens"][row, : len(target)].tolist() == [2, *target[:-1]]
        assert batch["net_input"]["src_tokens"][row, : len(source)].tolist() == source


# Toy problems, their examples, and the task.


PAD, END = 1, 2


def task(**options: Any) -> ToySequencesTask:
    return ToySequencesTask(ToySequencesConfig(**options))


def number(digits: list[int]) -> int:
    """Return a number whose least significant digit comes first."""
    return int("".join(map(str, reversed(digits))))


@settings(deadline=None, max_examples=60)
@given(st.integers(3, 80), st.integers(0, 99))
def test_a_sum_is_that_of_both_numbers_with_room_for_a_carry(length: int, seed: int) -> None:
    source, target = addition(length, np.random.default_rng(seed))
    plus = source.index(SYMBOLS.index("+"))
    first, second = source[:plus], source[plus + 1 :]
    assert len(source) == length and first and second
    assert number(first) + number(second) == number(target)
    assert len(target) == max(len(first), len(second)) + 1


def test_a_copy_is_its_input() -> None:
    source, target = copying(40, np.random.default_rng(0))
    assert source == target and set(source) == set(range(10))


def test_lengths_are_those_of_the_split_and_splits_differ() -> None:
    made = task(examples=300, test_examples=300, shortest=3, longest=9, test_shortest=20, test_longest=22)
    for split, lengths in (("train", range(3, 10)), ("valid", range(3, 10)), ("test", range(20, 23))):
        made.load_dataset(split)
        dataset = made.dataset(split)
        assert {len(dataset[index]["source"]) - 1 for index in range(300)} == set(lengths)
    train, valid = made.dataset("train"), made.dataset("valid")
    assert train[0]["source"].tolist() != valid[0]["source"].tolist()


def pairs(problem: str, split: str) -> Any:
    """Return drawn pairs of a split: of texts without spans, or of a problem."""
    if problem == "spans":
        texts = Texts([torch.tensor([7, 2]), *(torch.cat([torch.arange(10, n), torch.tensor([2])]) for n in (22, 200))])
        return dataset(texts, is_training=split == "train", prefix=(0,))
    made = task(problem=problem, examples=50, test_examples=50)
    made.load_dataset(split)
    return made.dataset(split)


@pytest.mark.parametrize("split", ["train", "valid"])
@pytest.mark.parametrize("problem", ["spans", *PROBLEMS])
def test_pairs_fit_what_is_said_of_them_and_only_those_of_training_are_others_in_another_epoch(
    problem: str, split: str
) -> None:
    def drawn(made: Any) -> list[Any]:
        return [[item[side].tolist() for side in ("source", "target")] for item in map(made.__getitem__, places)]

    made, resumed = pairs(problem, split), pairs(problem, split)
    places = range(len(made))
    before = drawn(made)
    assert before == drawn(made)
    for place, (source, target) in enumerate(before):
        assert source[-1] == target[-1] == END
        assert len(source) == made.src.size(place) and len(target) <= made.tgt.size(place)
        assert problem != "spans" or (source[0] == target[0] == 0 and len(target) == made.tgt.size(place))
    for each in (made, resumed):
        each.set_epoch(2)
    assert drawn(made) == drawn(resumed) and (drawn(made) == before) is (split != "train")
    assert problem != "spans" or before[0] == [[0, 7, 2], [0, 2]]


def test_symbols_and_whole_sequences_that_are_right_are_counted() -> None:
    made = task(shortest=3, longest=4, test_examples=2)
    made.load_dataset("valid")
    dataset = made.dataset("valid")
    batch = dataset.collater([dataset[0], dataset[1]])
    target = batch["target"]
    # All is right but the first symbol of the second row; what stands at padding does not count.
    said = target.masked_fill(target.eq(PAD), END)
    said[1, 0] = PAD

    class Model(torch.nn.Module):
        def forward(self, **_: Any) -> tuple[torch.Tensor, None]:
            return torch.nn.functional.one_hot(said, 20).float(), None

    def criterion(*_: Any) -> tuple[int, int, dict[str, Any]]:
        return 0, 1, {}

    symbols = int(target.ne(PAD).sum())
    assert made.valid_step(batch, Model(), criterion)[2] == {
        "toy_symbols": symbols,
        "toy_symbols_right": symbols - 1,
        "toy_sequences": 2,
        "toy_sequences_right": 1,
    }


# The start at which a model copies its documents.


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 200), st.integers(1, 200), st.integers(0, 2**20))
def test_tokens_to_copy_are_different_ones_in_reading_order_and_not_too_many(length: int, most: int, seed: int) -> None:
    places = spans_to_copy(length, most, np.random.default_rng(seed))
    assert len(places) <= most and (np.diff(places) > 0).all()
    assert len(places) == 0 if not length else places[0] >= 0 and places[-1] < length
    # All of a document is copied where a summary is as long.
    assert length > most or places.tolist() == list(range(length))


def test_most_of_what_is_copied_comes_in_spans() -> None:
    places = spans_to_copy(1000, 100, np.random.default_rng(1))
    assert 90 < len(places) <= 100 and (np.diff(places) == 1).mean() > 0.9


def vocabulary(size: int) -> Dictionary:
    found = Dictionary()
    for number in range(len(found), size):
        found.add_symbol(str(number))
    return found


def batch() -> dict[str, Any]:
    source = torch.tensor([[11, 12, 13, 14, 2], [21, 22, 2, 1, 1]])
    target = torch.tensor([[5, 6, 7, 8, 9, 2], [5, 6, 2, 1, 1, 1]])
    before = torch.tensor([[2, 5, 6, 7, 8, 9], [2, 5, 6, 1, 1, 1]])
    inputs = {"src_tokens": source, "lengths": [5, 3], "prev_output_tokens": before}
    return {"id": torch.tensor([7, 3]), "net_input": inputs, "target": target, "ntokens": 9}


def test_a_document_stands_where_its_summary_did() -> None:
    made = copying_batch(batch(), [1, 0], vocabulary(50))
    assert made["target"].tolist() == [[11, 12, 13, 14, 2], [21, 22, 2, 1, 1]]
    assert made["net_input"]["prev_output_tokens"].tolist() == [[2, 11, 12, 13, 14], [2, 21, 22, 1, 1]]
    assert made["ntokens"] == 8 and made["net_input"]["src_tokens"] is not None


def test_a_query_is_not_copied_and_tags_are_no_part_of_tokens() -> None:
    asked = batch()
    # "7 8" asks for "9 10" with the tags 1 and 3; the other document is empty.
    asked["net_input"]["src_tokens"] = torch.tensor([[7, 8, 2, 59, 160, 2], [7, 8, 9, 2, 2, 1]])
    asked["net_input"]["lengths"] = [6, 5]
    made = copying_batch(asked, [1, 0], vocabulary(50))
    assert made["target"].tolist() == [[9, 10, 2], [2, 1, 1]] and made["ntokens"] == 4
    assert made["net_input"]["prev_output_tokens"].tolist() == [[2, 9, 10], [2, 1, 1]]


def test_a_resumed_run_copies_the_same_spans_and_a_later_update_others() -> None:
    source = torch.arange(4, 304)[None]
    long = {
        "id": torch.tensor([9]),
        "net_input": {"src_tokens": source, "lengths": [300], "prev_output_tokens": torch.full((1, 65), 2)},
        "target": torch.full((1, 65), 5),
        "ntokens": 65,
    }
    first, again, later = (copying_batch(long, [1, update], vocabulary(304))["target"].tolist() for update in (4, 4, 5))
    assert first == again != later
