import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score import rouge_scorer

from pyramidions.text.language import ENGLISH, Language
from pyramidions.text.subsequence import Subsequences

WORDS = st.lists(st.sampled_from("abcd"), max_size=14)


@given(WORDS, WORDS)
def test_the_length_is_that_of_the_table(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    assert Subsequences(one).length(other) == table[-1][-1]


@given(WORDS, WORDS)
def test_the_positions_are_those_that_rouge_score_reads_from_its_table(one, other):
    found = Subsequences(one).positions(other)
    expected = rouge_scorer.lcs_ind(one, other)
    assert [place for place in range(len(one)) if found >> place & 1] == expected


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
