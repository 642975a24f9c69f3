"""ROUGE-L recall of a sentence."""

import random

import pytest
from tables import for_each

from pyramidions.text.overlap import Recall, words_of


def longest(one: list[str], other: list[str]) -> int:
    """Return the length of a longest common subsequence, by its definition."""
    if not one or not other:
        return 0
    if one[-1] == other[-1]:
        return 1 + longest(one[:-1], other[:-1])
    return max(longest(one[:-1], other), longest(one, other[:-1]))


@for_each(
    ("sentence", "other", "recall"),
    [
        ("Police killed the gunman.", "Police kill the gunman", 3 / 4),  # Lin 2004, section 3.2
        ("police killed the gunman", "the gunman kill police", 2 / 4),
        ("a b c", "c b a", 1 / 3),
        ("a a b", "a b", 2 / 3),
        ("a b", "a x b y a b", 1),
        ("a b", "", 0),
        ("…", "…", 0),
    ],
)
def test_recall_is_the_share_of_the_words_found_in_order(sentence: str, other: str, recall: float) -> None:
    assert Recall(words_of(sentence)).by(words_of(other)) == pytest.approx(recall)


def test_recall_is_that_of_the_definition() -> None:
    draw = random.Random(1)
    for _ in range(200):
        one, other = (draw.choices("abcd", k=draw.randrange(1, 9)) for _ in range(2))
        assert Recall(one).by(other) == pytest.approx(longest(one, other) / len(one))
