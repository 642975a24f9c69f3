"""Toy problems, their examples, and the task."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.plugin.tasks.config import ToySequencesConfig
from pyramidions.plugin.tasks.toy_sequences import PROBLEMS, SYMBOLS, ToySequencesTask, addition, copying

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


def test_examples_are_new_in_each_epoch_of_training_and_the_same_in_validation() -> None:
    made = task(examples=4, test_examples=4)
    for split, fixed in (("train", False), ("valid", True), ("test", True)):
        made.load_dataset(split)
        dataset = made.dataset(split)
        before = dataset[0]["source"].tolist()
        assert dataset[0]["source"].tolist() == before
        dataset.set_epoch(2)
        assert (dataset[0]["source"].tolist() == before) is fixed


def test_lengths_are_those_of_the_split_and_splits_differ() -> None:
    made = task(examples=300, test_examples=300, shortest=3, longest=9, test_shortest=20, test_longest=22)
    for split, lengths in (("train", range(3, 10)), ("valid", range(3, 10)), ("test", range(20, 23))):
        made.load_dataset(split)
        dataset = made.dataset(split)
        assert {len(dataset[index]["source"]) - 1 for index in range(300)} == set(lengths)
    train, valid = made.dataset("train"), made.dataset("valid")
    assert train[0]["source"].tolist() != valid[0]["source"].tolist()


def test_every_problem_fits_what_is_said_of_its_sizes() -> None:
    for name in PROBLEMS:
        made = task(problem=name, examples=50)
        made.load_dataset("train")
        dataset = made.dataset("train")
        for index in range(50):
            item = dataset[index]
            assert item["source"][-1] == item["target"][-1] == END
            assert len(item["source"]) == dataset.src.size(index) and len(item["target"]) <= dataset.tgt.size(index)


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


@for_each(
    ("options", "message"),
    [
        ({"problem": "sorting"}, "`problem` must be one of copy, addition, but is 'sorting'."),
        ({"problem": "addition", "shortest": 2}, "`shortest` must be at least 3 for addition, but is 2."),
        ({"longest": 2}, "`shortest` must be at most `longest`, but is 3, above 2."),
        ({"test_shortest": 301}, "`test_shortest` must be at most `test_longest`, but is 301, above 300."),
        ({"examples": 0}, "`examples` must be at least 1, but is 0."),
    ],
)
def test_what_is_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        task(**options)


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(UserError, match="A split must be one of train, valid, test, but is 'dev'."):
        task().load_dataset("dev")
