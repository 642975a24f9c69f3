"""What two texts share: longest common subsequences, greedy fragments, and what supports a sentence."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from pyramidions.text.fragments import Fragment, fragments
from pyramidions.text.language import ENGLISH, Language
from pyramidions.text.subsequence import Subsequences
from pyramidions.text.support import SupportIndex

TEXTS = st.lists(st.sampled_from("abcd"), max_size=14)


@given(TEXTS, TEXTS)
def test_the_longest_subsequence_is_that_of_the_table_and_of_rouge_score(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    assert Subsequences(one).length(other) == table[-1][-1]
    found = Subsequences(one).positions(other)
    assert [place for place in range(len(one)) if found >> place & 1] == rouge_scorer.lcs_ind(one, other)


@pytest.mark.parametrize(
    ("sentence", "other", "recall"),
    [
        ("Police killed the gunman.", "Police kill the gunman", 3 / 4),  # Lin 2004, section 3.2
        ("police killed the gunman", "the gunman kill police", 2 / 4),
        ("a b", "a x b y a b", 1),
        ("…", "…", 0),
    ],
)
def test_recall_is_the_share_of_the_words_found_in_order(sentence: str, other: str, recall: float) -> None:
    words = Language(ENGLISH).words
    assert Subsequences(words(sentence)).recall(words(other)) == pytest.approx(recall)


def plain_search(summary: list[str], source: list[str]) -> list[Fragment]:
    """Try every place of the source for every word of the summary."""
    found, start = [], 0
    while start < len(summary):
        lengths = []
        for place in range(len(source)):
            length = 0
            while summary[start + length : start + length + 1] == source[place + length : place + length + 1] != []:
                length += 1
            lengths.append(length)
        best = max(lengths, default=0)
        if best:
            found.append(Fragment(start, lengths.index(best), best))
        start += max(best, 1)
    return found


@given(TEXTS, TEXTS)
def test_fragments_are_those_of_a_plain_search(summary: list[str], source: list[str]) -> None:
    assert fragments(summary, source) == plain_search(summary, source)


def test_fragments_by_hand_and_in_no_cubic_time() -> None:
    summary = "we show that the cell divides today".split()
    source = "today we know that the cell divides fast".split()
    assert fragments(summary, source) == [(0, 1, 1), (2, 3, 4), (6, 0, 1)]
    # A plain search compares 8,000,000,000 words.
    assert fragments(["a"] * 2000, ["a"] * 2000) == [(0, 0, 2000)]


SOURCE = [
    "The cell divides every two hours in warm water.",
    "Cold water stops it.",
    "We counted the cells by hand every two hours.",
]


@pytest.mark.parametrize(
    ("source", "sentence", "shares"),
    [
        pytest.param(SOURCE, SOURCE[1], [(1, 1)], id="a copy"),
        pytest.param(SOURCE, "Unicorns like to sing at night.", [], id="made up"),
        pytest.param(
            SOURCE, "The cells by hand every two hours in warm water stops.", [(2, 0.6), (0, 0.3), (1, 0.1)],
            id="the best, then those that add most",
        ),
        pytest.param(["u v"], "u v u v", [(0, 1 / 3)], id="as often as the source has it"),
        pytest.param(["u v x u v"], "u v u v", [(0, 2 / 3)], id="twice"),
        pytest.param(["u v", "u v"], "u v u v", [(0, 1 / 3), (1, 1 / 3)], id="the second adds the second"),
        pytest.param(["u", "v"], "u v", [], id="no pair across sentences"),
        pytest.param(
            ["u v", "v w", "w x", "x y"], "u v w x y", [(0, 0.25), (1, 0.25), (2, 0.25)], id="three at most"
        ),
        # "the king", "king sat", "sat in", "the garden", "garden of", "the queen"
        pytest.param(
            ["In the end of the study, it was one of the best."], "The king sat in the garden of the queen.",
            [], id="pairs of stop words do not count",
        ),
        pytest.param(["A king sat."], "The king sat in the garden of the queen.", [(0, 1 / 6)], id="others do"),
        pytest.param(SOURCE, "Of the.", None, id="of stop words nothing can be said"),
        pytest.param(SOURCE, "Water.", None, id="nor of one word"),
        pytest.param(SOURCE, "", None, id="nor of none"),
    ],
)  # fmt: skip
def test_pairs_are_counted_by_the_sentences_that_have_them(
    source: list[str], sentence: str, shares: list[tuple[int, float]] | None
) -> None:
    support = SupportIndex(source).support(sentence)
    assert [(each.start, each.share) for each in support.by_words] == (shares or [])
    if shares is None:
        assert support.recall is support.is_supported is None
    else:
        assert support.recall == pytest.approx(sum(share for _, share in shares))
        assert support.is_supported == (support.recall >= 0.25)
    german = SupportIndex(["Er war in der Stadt und auf dem Land."], "de")
    recall = german.support("Sie war in der Welt und auf dem Mond.").recall
    assert recall is not None and recall < 0.5


def test_a_number_is_one_word() -> None:
    source = SupportIndex(["We sold 12,500 shares at 3.25 dollars."])
    said = ("99,500 shares", "at 32.5 dollars", "at 325 dollars", "12500 shares at 3.25 dollars")
    assert [source.support(each).recall for each in said] == [0, 0, 0, 1]


def test_a_quarter_of_the_pairs_is_enough() -> None:
    words = [f"w{i}" for i in range(9)]  # of eight pairs
    found = [SupportIndex([" ".join(words[: shared + 1])]).support(" ".join(words)).is_supported for shared in (1, 2)]
    assert found == [False, True]


def test_the_first_share_is_rouge_2_recall() -> None:
    draw = random.Random(1)
    scorer = rouge_scorer.RougeScorer(["rouge2"])
    for _ in range(100):
        sentence, *source = (" ".join(draw.choices("wxyz", k=draw.randrange(2, 9))) for _ in range(4))
        support = SupportIndex(source, "en").support(sentence)
        recalls = [scorer.score(sentence, other)["rouge2"].recall for other in source]
        best = [(recalls.index(max(recalls)), pytest.approx(max(recalls)))] if max(recalls) else []
        assert [(each.start, each.share) for each in support.by_words[:1]] == best
