"""What supports a sentence: hand-made cases, and ROUGE-2 recall of rouge-score."""

import random

import pytest
from rouge_score.rouge_scorer import RougeScorer

from pyramidions.text.support import SupportIndex

SOURCE = [
    "The cell divides every two hours in warm water.",
    "Cold water stops it.",
    "We counted the cells by hand every two hours.",
]


def test_a_copied_sentence_is_its_own_support_and_a_made_up_one_has_none() -> None:
    copied = SupportIndex(SOURCE).support(SOURCE[1])
    assert copied.by_words == ((SOURCE[1], 1, 2, 1.0),) and copied.is_supported
    made_up = SupportIndex(SOURCE).support("Unicorns like to sing at night.")
    assert made_up.by_words == () and made_up.recall == 0 and made_up.is_supported is False


def test_the_best_sentence_comes_first_and_then_those_that_add_most() -> None:
    made = "The cells by hand every two hours in warm water stops."
    support = SupportIndex(SOURCE).support(made)
    assert [(each.start, each.share) for each in support.by_words] == [(2, 0.6), (0, 0.3), (1, 0.1)]
    assert support.recall == 1


@pytest.mark.parametrize(
    ("source", "sentence", "shares"),
    [
        pytest.param(["u v"], "u v u v", {0: 1 / 3}, id="as often as the source has it"),
        pytest.param(["u v x u v"], "u v u v", {0: 2 / 3}, id="twice"),
        pytest.param(["u v", "u v"], "u v u v", {0: 1 / 3, 1: 1 / 3}, id="the second adds the second"),
        pytest.param(["u", "v"], "u v", {}, id="no pair across sentences"),
        pytest.param(["u v", "v w", "w x", "x y"], "u v w x y", {0: 0.25, 1: 0.25, 2: 0.25}, id="three at most"),
    ],
)
def test_pairs_are_counted_by_the_sentences_that_have_them(
    source: list[str], sentence: str, shares: dict[int, float]
) -> None:
    support = SupportIndex(source).support(sentence)
    assert {each.start: each.share for each in support.by_words} == shares
    assert support.recall == pytest.approx(sum(shares.values()))


def test_pairs_of_stop_words_count_in_no_document() -> None:
    source = SupportIndex(["In the end of the study, it was one of the best."])
    assert source.support("It was in the.").recall is None
    # "the king", "king sat", "sat in", "the garden", "garden of", "the queen"
    assert source.support("The king sat in the garden of the queen.").recall == 0
    assert SupportIndex(["A king sat."]).support("The king sat in the garden of the queen.").recall == 1 / 6
    german = SupportIndex(["Er war in der Stadt und auf dem Land."], "de")
    assert german.support("Sie war in der Welt und auf dem Mond.").recall < 0.5


def test_a_number_is_one_word() -> None:
    source = SupportIndex(["We sold 12,500 shares at 3.25 dollars."])
    for other in ("99,500 shares", "at 32.5 dollars", "at 325 dollars"):
        assert source.support(other).recall == 0
    assert source.support("12500 shares at 3.25 dollars").recall == 1


def test_of_one_word_nothing_can_be_said() -> None:
    for nothing in ("Water.", "", "Of the."):
        support = SupportIndex(SOURCE).support(nothing)
        assert support.recall is support.is_supported is None and support.by_words == ()


@pytest.mark.parametrize(("shared", "is_enough"), [(1, False), (2, True)])
def test_a_quarter_of_the_pairs_is_enough(shared: int, is_enough: bool) -> None:
    words = [f"w{i}" for i in range(9)]  # of eight pairs
    assert SupportIndex([" ".join(words[: shared + 1])]).support(" ".join(words)).is_supported is is_enough


def test_the_first_share_is_rouge_2_recall() -> None:
    draw = random.Random(1)
    scorer = RougeScorer(["rouge2"])
    for _ in range(100):
        sentence, *source = (" ".join(draw.choices("wxyz", k=draw.randrange(2, 9))) for _ in range(4))
        support = SupportIndex(source, "en").support(sentence)
        recalls = [scorer.score(sentence, other)["rouge2"].recall for other in source]
        best = [(recalls.index(max(recalls)), pytest.approx(max(recalls)))] if max(recalls) else []
        assert [(each.start, each.share) for each in support.by_words[:1]] == best
