"""Words of languages: their vowel signs are part of them, their full stops are not."""

import pytest

from pyramidions.text.language import Language


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        ("hi", "यह घर है। वह है॥", ["यह", "घर", "है", "वह", "है"]),
        ("bn", "সে যায়।", ["সে", "যায়"]),
        ("ar", "كِتَاب، هٰذا", ["كِتَاب", "هٰذا"]),
        ("he", "שָׁלוֹם, עולם", ["שָׁלוֹם", "עולם"]),
        ("fa", "می\u200cروم.", ["می\u200cروم"]),
        ("fr", "l'été\u0301", ["l", "été\u0301"]),
    ],
)
def test_vowel_signs_are_part_of_words_and_full_stops_are_not(code: str, text: str, words: list[str]) -> None:
    assert Language(code).words(text) == words


@pytest.mark.parametrize(
    ("code", "text", "characters"),
    [
        ("th", "มี กี่", "มีกี่"),
        ("km", "ខ្ញុំ។", "ខ្ញុំ"),
        ("my", "မြန်မာ။", "မြန်မာ"),
        ("bo", "བོད་སྐད།", "བོདསྐད"),
        ("zh", "我_猫。", "我猫"),
    ],
)
def test_characters_are_letters_digits_and_vowel_signs(code: str, text: str, characters: str) -> None:
    assert Language(code).words(text) == list(characters)


@pytest.mark.parametrize(
    ("code", "text", "sentences"),
    [
        ("zh", "供热占三分之一。2035年完成。48个城市参加。", ["供热占三分之一。", "2035年完成。", "48个城市参加。"]),
        ("zh", "城市很大。“没有工人就没有转型。”", ["城市很大。", "“没有工人就没有转型。”"]),
        ("ja", "熱を占める。2023年、市は決定した。", ["熱を占める。", "2023年、市は決定した。"]),
        ("ja", "「行く。来る。」", ["「行く。来る。」"]),
        ("zh", "没有。。。", ["没有。。。"]),
    ],
)
def test_an_ideographic_full_stop_ends_a_sentence_but_in_quotes(code: str, text: str, sentences: list[str]) -> None:
    assert Language(code).sentences(text) == sentences
