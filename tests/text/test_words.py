"""Words of any script and language, and their sentences."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from rouge_score import tokenize

from pyramidions.text.casing import Casing
from pyramidions.text.language import Language
from pyramidions.text.normalization import normalize
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
    assert [word for word, _, _ in found] == [text[start:end].lower() for _, start, end in found] == words


@given(st.text(alphabet=st.one_of(st.sampled_from("aZ9 -_'.é²İ\n"), st.characters()), max_size=40))
def test_english_words_are_those_of_rouge_score(text: str) -> None:
    assert Language("en").words(text) == tokenize.tokenize(normalize(text), None)


def test_two_characters_are_a_word_where_no_spaces_are_written() -> None:
    texts = {"": 0, "Two words .": 3, "これは犬です。": 3, "apt は便利なツール、apt 2 です。": 7}
    assert {text: count_words(text) for text in texts} == texts


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        ("hi", "यह घर है। वह है॥", ["यह", "घर", "है", "वह", "है"]),
        ("bn", "সে যায়।", ["সে", "যায়"]),
        ("ar", "كِتَاب، هٰذا", ["كِتَاب", "هٰذا"]),
        ("he", "שָׁלוֹם, עולם", ["שָׁלוֹם", "עולם"]),
        ("fa", "می\u200cروم.", ["می\u200cروم"]),
        ("fr", "l'été\u0301", ["l", "été\u0301"]),
        # Letters, digits and vowel signs are words where no spaces are written.
        ("th", "มี กี่", list("มีกี่")),
        ("km", "ខ្ញុំ។", list("ខ្ញុំ")),
        ("my", "မြန်မာ။", list("မြန်မာ")),
        ("bo", "བོད་སྐད།", list("བོདསྐད")),
        ("zh", "我_猫。", list("我猫")),
    ],
)
def test_vowel_signs_are_part_of_words_and_full_stops_are_not(code: str, text: str, words: list[str]) -> None:
    assert Language(code).words(text) == words


@pytest.mark.parametrize(("code", "stemmer"), [("de", "porter"), ("zh", "snowball"), ("tr", "snowball"), ("en", "x")])
def test_a_stemmer_that_a_language_has_not_is_refused(code: str, stemmer: str) -> None:
    with refused("`stemmer`"):
        Language(code, stemmer=stemmer)


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


PAPER = """METHODS
The mRNA of Escherichia coli was read. In Paris, E. coli grows with NASA. We saw BRCA1 and brca1, and BRCA1 again.
A mouse of strain C57BL ate. Mice eat. Growth was slow.
"""


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("we read mrna of escherichia coli in paris.", "We read mRNA of Escherichia coli in Paris."),
        ("nasa saw brca1.", "NASA saw BRCA1."),
        ("mrna grows. mice eat.", "mRNA grows. Mice eat."),
        # "Mice" and "Growth" have their capitals only as first words, and METHODS as a heading.
        ("the mice have methods of growth.", "The mice have methods of growth."),
        ("what no paper says: xyz.", "What no paper says: xyz."),
        ("RNA of 3 cats. (dogs) eat", "RNA of 3 cats. (Dogs) eat"),
        ("", ""),
    ],
)
def test_a_summary_without_capitals_is_written_as_its_document_is(summary: str, expected: str) -> None:
    assert Casing(PAPER).restore(summary) == expected


def test_stems_are_those_of_nltk_which_is_not_loaded_for_them_and_whole_afterwards() -> None:
    program = """
import sys
from pyramidions.text.language import Language
words = "flying dies skies caresses agreed bees sky by relational happily".split()
stems = [Language("en").stem(word) for word in words]
assert not {"nltk", "sklearn", "scipy.stats"} & {*sys.modules}
from nltk.stem import PorterStemmer, SnowballStemmer
assert stems == [PorterStemmer().stem(word) for word in words] and SnowballStemmer("german").stem("Bienen") == "bien"
"""
    assert subprocess.run([sys.executable, "-c", program], check=True).returncode == 0
