"""Texts in windows: the same as at once."""

from hypothesis import given
from hypothesis import strategies as st

from pyramidions.text.normalization import normalize, split_sentences
from pyramidions.text.text_windows import WINDOW, holds_text, lines, sentences, windows

ANY_TEXT = st.text(st.characters(exclude_categories=[]))
# Words that NFKC composes, decomposes and reorders, and that lose characters; all kinds of white space between them.
WORDS = st.lists(st.text("aé\u0301\u0323\u00a8ﬁ각\u1100\u1161\x00\u200b\u200d中\u064b", max_size=6))
SPACES = st.lists(st.sampled_from(" \n\t\r\x0b\x1c\x85\xa0\u1680\u2028\u3000"), min_size=40, max_size=40)


@given(st.text("ab\n\r\x0b\x0c\x1c\x85\u2028", max_size=20), st.integers(1, 9))
def test_lines_are_those_of_the_text_at_once(text, most):
    assert list(lines(text, most)) == text.splitlines()


@given(ANY_TEXT, st.integers(1, 9))
def test_windows_are_the_text_in_parts_of_limited_length_and_their_sentences_lose_white_space_alone(text, most):
    found = list(windows(text, most))
    assert "".join(found) == text and max(map(len, found)) <= most
    cut = [sentence for some in sentences(found, most) for sentence in some]
    assert all(cut) and "".join("".join(cut).split()) == "".join("".join(map(normalize, found)).split())


@given(WORDS, SPACES)
def test_normalised_windows_joined_are_the_normalised_text(words, spaces):
    text = "".join(word + space for word, space in zip(words, spaces, strict=False))
    # Each window has room for a word and the white space before it.
    parts = [normalize(window) for window in windows(text, 8)]
    assert " ".join(part for part in parts if part) == normalize(text)


def test_a_text_that_is_no_longer_than_a_window_is_whole_and_one_without_white_space_is_cut():
    text = "a b" * (WINDOW // 3)
    assert next(windows(text)) is text
    assert list(windows("abcde fg", 3)) == ["abc", "de", " fg"]
    assert holds_text(" " * WINDOW + "x") and not holds_text("") and not holds_text(" \n\x00\u200b\ud800" * 9)


@given(st.lists(st.sampled_from(["Dogs bark.", "See fig. 3 now!", "why?", "no end", "e.g. this"])), st.integers(40, 90))
def test_sentences_go_on_from_window_to_window(parts, most):
    text = " ".join(parts)
    assert [sentence for some in sentences(windows(text, most), 10_000) for sentence in some] == split_sentences(text)


def test_a_sentence_without_end_is_not_waited_for():
    found = [len(sentence) for some in sentences(windows("word " * 100, 50), 50) for sentence in some]
    assert sum(found) > 390 and max(found) <= 101
