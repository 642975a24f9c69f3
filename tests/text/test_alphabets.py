"""Texts in the letters of a language, spaces and line ends."""

import unicodedata

import numpy as np
import pytest
from refusals import refused

from pyramidions.text.alphabets import LETTERS, alphabet_of, recorded_alphabet


@pytest.mark.parametrize(
    ("language", "text", "cleaned"),
    [
        ("en", "In 1905, Einstein's E=mc²!", "in one nine zero five einstein s e mc two "),
        ("en", "ﬁne　ＡＢＣ", "fine abc"),
        ("en", "soft\u00adhyphen and zero\u200bwidth", "softhyphen and zerowidth"),
        ("en", "_START_ARTICLE_\nRiver\n_START_PARAGRAPH_\nA _NEWLINE_B", "\nriver\na\nb"),
        ("en", "one -\r\n\n (two) \n", "one\ntwo\n"),
        ("en", "naïve\n\u0308 café", "na ve\ncaf "),
        ("en", "Engliѕh ΖᏃℤ ａ", "english zzz a"),
        ("en", "3 × ০ ⊂", " three "),
        ("en", "", ""),
        ("en", "\u200b \u00a0end\n\ufeff", " end\n"),
        ("fi", "\u0308a\u0308", " ä"),
        ("fi", "Vuonna 1809: Åbo, ÄITI & yö", "vuonna yksi kahdeksan nolla yhdeksän åbo äiti yö"),
        ("vi", "Năm 2024, Nguyễn Đức!", "năm hai không hai bốn nguyễn đức "),
        ("vi", unicodedata.normalize("NFD", "Tiếng Việt"), "tiếng việt"),
        ("he", "בְּרֵאשִׁית 1948 \ufb2aלום", "בראשית אחד תשעה ארבעה שמונה שלום"),
        ("he", "בית־ספר צה״ל ג׳ורג׳ abc", "בית־ספר צה״ל ג׳ורג׳ "),
    ],
)
def test_a_text_becomes_letters_single_spaces_and_line_ends(language: str, text: str, cleaned: str) -> None:
    assert alphabet_of(language).clean(text) == cleaned
    assert alphabet_of(language).clean(cleaned) == cleaned


@pytest.mark.parametrize(("language", "letters"), [("en", 26), ("fi", 29), ("he", 30), ("vi", 89)])
def test_each_letter_is_one_composed_character_in_lower_case_and_each_digit_a_word(language: str, letters: int) -> None:
    alphabet = LETTERS[language]
    assert len(alphabet.letters) == len(set(alphabet.letters)) == letters
    assert alphabet.letters == unicodedata.normalize("NFKC", alphabet.letters).lower()
    words = alphabet.clean("0123456789").split()
    assert words == alphabet.digits.split() and len({*words}) == 10 and min(map(len, words)) >= 2


def test_what_0_2_0_recorded_is_read_as_0_2_0_cleaned() -> None:
    for language in LETTERS:
        old, new = recorded_alphabet(language), alphabet_of(language)
        assert recorded_alphabet(new.name) == new and old.symbols == new.symbols[:-1], language
        assert old.clean("_NEWLINE_\n") == " " and old.clean("ѕ") == " "
    with refused("`characters`"):
        alphabet_of("de")


def test_ids_follow_fairseqs_special_symbols_and_the_space_comes_first() -> None:
    alphabet = alphabet_of("fi")
    assert alphabet.encode("abö \n").tolist() == [5, 6, 33, 4, 34] and alphabet.vocab_size == 35
    assert alphabet.symbols[:2] == ["▁", "a"] and alphabet.symbols[-1] == "␤"
    assert alphabet.decode(alphabet.encode("abö \n")) == "abö \n"
    for outside in ("A", "\t", "ж", "😀", "\ud800"):
        with refused("character 2 is "):
            alphabet.encode(f"a{outside}")


def test_bytes_are_those_of_utf_8_and_nothing_is_cleaned_away() -> None:
    alphabet, text = alphabet_of("bytes"), "Ça va?  \r\n“12”\x85à"
    clean = alphabet.clean(text)
    assert (alphabet.encode(clean) - 4).tolist() == list(text.encode()) and alphabet.vocab_size == 260
    assert alphabet.written(alphabet.decode(alphabet.encode(clean))) == text
    assert alphabet.encode("ÿ").dtype == np.uint16 and alphabet.written("\xff.") == "\ufffd."
    assert alphabet.clean("\ud800") == "?" and not alphabet.outside(text)
    assert len({*alphabet.symbols}) == 256 and not any(map(str.isspace, alphabet.symbols))
    assert [alphabet.symbols[ord(each)] for each in " \na~"] == ["▁", "␤", "a", "~"]
    assert recorded_alphabet(alphabet.name) == alphabet


def test_what_becomes_a_space_is_counted_without_digits_white_space_and_vowel_signs() -> None:
    assert LETTERS["en"].outside("Café 12,\n_NEWLINE_ (café)") == {"é": 2, ",": 1, "(": 1, ")": 1}
    assert LETTERS["fi"].outside("\u00c4iti, a\u0308iti") == {",": 1}
    assert LETTERS["he"].outside("\u05e9\u05b8\u05dc\u05d5\u05b9\u05dd!") == {"!": 1}
