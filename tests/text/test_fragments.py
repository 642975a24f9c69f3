"""Greedy longest common fragments, by hand and against a plain search."""

from hypothesis import given
from hypothesis import strategies as st

from pyramidions.text.fragments import Fragment, fragments

WORDS = st.lists(st.sampled_from("abc"), max_size=14)


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


@given(WORDS, WORDS)
def test_fragments_are_those_of_a_plain_search(summary: list[str], source: list[str]) -> None:
    assert fragments(summary, source) == plain_search(summary, source)


def test_words_that_the_source_lacks_belong_to_no_fragment() -> None:
    summary = "we show that the cell divides today".split()
    source = "today we know that the cell divides fast".split()
    assert fragments(summary, source) == [(0, 1, 1), (2, 3, 4), (6, 0, 1)]


def test_a_text_that_repeats_one_word_takes_no_cubic_time() -> None:
    # A plain search compares 8,000,000,000 words.
    assert fragments(["a"] * 2000, ["a"] * 2000) == [(0, 0, 2000)]
