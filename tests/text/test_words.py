"""Words of any script, and their places."""

import pytest

from pyramidions.text.words import count_words, word_places


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The p-value, 0.05!", ["the", "p", "value", "0", "05"]),
        ("Größe übrigens", ["größe", "übrigens"]),
        ("基因 map图", ["基", "因", "map", "图"]),
        # A vowel sign belongs to its letter, the full stop to none.
        ("हिन्दी में।", ["हिन्दी", "में"]),
        ("snake_case", ["snake", "case"]),
        ("… — !", []),
    ],
)
def test_words_are_runs_of_letters_and_digits(text: str, words: list[str]) -> None:
    found = list(word_places(text))
    assert [word for word, _, _ in found] == words
    assert [text[start:end].lower() for _, start, end in found] == words


@pytest.mark.parametrize(
    ("text", "words"),
    [("", 0), ("Two words .", 3), ("これは犬です。", 3), ("apt は便利なツール、apt 2 です。", 7)],
)
def test_two_characters_are_a_word_where_no_spaces_are_written(text: str, words: int) -> None:
    assert count_words(text) == words
