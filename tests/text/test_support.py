"""What supports a sentence: hand-made cases, and ROUGE-2 recall of rouge-score."""

import random

import pytest
from rouge_score.rouge_scorer import RougeScorer

from pyramidions.text.support import SupportIndex

SOURCE = [
    "the cell divides every two hours in warm water".split(),
    "cold water stops it".split(),
    "we counted the cells by hand every two hours".split(),
]


def test_a_copied_sentence_is_its_own_support() -> None:
    support = SupportIndex(SOURCE).support(SOURCE[1])
    assert support == ((1,), (3,), 3)
    assert support.is_enough


def test_a_made_up_sentence_has_no_support() -> None:
    support = SupportIndex(SOURCE).support("unicorns like to sing at night".split())
    assert support == ((), (), 5) and support.recall == 0 and not support.is_enough


def test_the_best_sentence_comes_first_and_then_those_that_add_most() -> None:
    made = "the cells by hand every two hours in warm water stops".split()
    support = SupportIndex(SOURCE).support(made)
    assert support.shares == [(2, 0.6), (0, 0.3), (1, 0.1)]
    assert support.recall == 1


def test_at_most_three_sentences_are_named() -> None:
    source = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"]]
    support = SupportIndex(source).support(list("abcde"))
    assert support.sentences == (0, 1, 2) and support.recall == 3 / 4


def test_a_pair_counts_as_often_as_the_source_has_it() -> None:
    assert SupportIndex([["a", "b"]]).support(["a", "b", "a", "b"]) == ((0,), (1,), 3)
    assert SupportIndex([["a", "b", "x", "a", "b"]]).support(["a", "b", "a", "b"]) == ((0,), (2,), 3)
    # The second of two sentences adds the second of two equal pairs.
    assert SupportIndex([["a", "b"], ["a", "b"]]).support(["a", "b", "a", "b"]) == ((0, 1), (1, 1), 3)


def test_no_pair_goes_across_two_sentences_of_the_source() -> None:
    assert SupportIndex([["a"], ["b"]]).support(["a", "b"]).sentences == ()


def test_of_one_word_nothing_can_be_said() -> None:
    assert SupportIndex(SOURCE).support(["water"]) is None
    assert SupportIndex(SOURCE).support([]) is None


@pytest.mark.parametrize(("shared", "is_enough"), [(1, False), (2, True)])
def test_a_quarter_of_the_pairs_is_enough(shared: int, is_enough: bool) -> None:
    sentence = [f"w{i}" for i in range(9)]  # of eight pairs
    assert SupportIndex([sentence[: shared + 1]]).support(sentence).is_enough is is_enough


def test_the_first_share_is_rouge_2_recall() -> None:
    draw = random.Random(1)
    scorer = RougeScorer(["rouge2"])
    for _ in range(100):
        sentence, *source = (draw.choices("abcd", k=draw.randrange(2, 9)) for _ in range(4))
        support = SupportIndex(source).support(sentence)
        recalls = [scorer.score(" ".join(sentence), " ".join(words))["rouge2"].recall for words in source]
        if max(recalls) == 0:
            assert support.sentences == ()
        else:
            assert support.shares[0] == (recalls.index(max(recalls)), pytest.approx(max(recalls)))
