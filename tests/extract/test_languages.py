"""Extraction from documents in several languages."""

import numpy as np
import pytest
from texts_in_languages import PAPERS

from pyramidions.data.divide import DivideSentences, assign
from pyramidions.data.readers import Document
from pyramidions.extract import Budget, Oracle, SelectionRules, TextRank, select
from pyramidions.extract.concepts.words import words_in
from pyramidions.extract.oracle import oracle
from pyramidions.extract.vectors import words_of_vectors
from pyramidions.inference.extractor import Extractor
from pyramidions.text.language import Language
from pyramidions.text.normalization import normalize
from pyramidions.text.outline import Outline, Unit, outline


@pytest.mark.parametrize("code", PAPERS)
def test_the_sentence_that_a_summary_repeats_is_found_by_the_words_of_the_language(code: str) -> None:
    written = PAPERS[code]
    assert int(np.argmax(Oracle(written.summary).rank(outline(written.text)))) == 3
    assert oracle(written.sentences, written.summary, code)[0] == 3
    (pair,) = DivideSentences()(Document("a", written.text, written.summary)).documents
    assert pair.source == normalize(written.sentences[3])
    sections = [written.sentences[:2], written.sentences[2:]]
    assert assign([written.summary], sections, Language(code)) == [[], [written.summary]]


@pytest.mark.parametrize("method", ["hiporank", "textrank", "lead"])
def test_each_method_extracts_whole_sentences(method: str) -> None:
    for code, written in PAPERS.items():
        extraction = Extractor(method).extract(written.text, sentences=1)
        assert extraction.to_dict()["language"] == code
        assert extraction.text in written.sentences


@pytest.mark.parametrize(
    ("language", "first", "rest"),
    [
        ("de", "We met Nr. 5 today.", " It slept."),
        ("zh", "蜂飞得很快很高。", "它们住在罗马城里。"),
        ("de", "Ann: Wir sehen uns am 3. Oktober in Rom.", "\nBob: Das ist sehr schön.\nAnn: Ja.\nBob: Ja."),
    ],
    ids=["German", "Chinese", "turns"],
)
def test_a_language_that_is_given_is_not_looked_for(language: str, first: str, rest: str) -> None:
    extraction = Extractor("lead", language=language).extract(first + rest, sentences=1)
    assert (extraction.outline.language, extraction.text) == (language, first)


def ranked(language: str, *sentences: str) -> list[float]:
    units = tuple(Unit(sentence, 0) for sentence in sentences)
    found: list[float] = TextRank().rank(Outline(units, ("",), language=language)).round(6).tolist()
    return found


def test_textrank_stems_words_and_leaves_stop_words_out_in_each_language() -> None:
    # "Ernten" is a form of "Ernte"; "weil" and "sind" say nothing.
    sentences = ("Ernte gut weil", "Ernten klein sind", "Wetter weil sind")
    first, second, last = ranked("de", *sentences)
    assert first == second > last
    first, second, last = ranked("en", *sentences)
    assert first == second < last


def test_words_of_vectors_keep_the_vowel_signs_of_indic_scripts() -> None:
    assert words_of_vectors("किसानों ने मिट्टी का अध्ययन किया") == "किसानों ने मिट्टी का अध्ययन किया".split()


def test_trigrams_are_of_words_of_the_language() -> None:
    sentences, rules = ["урожай свёклы вырос летом", "зимой урожай свёклы вырос"], SelectionRules(Budget(9), "trigrams")
    assert select(sentences, np.ones(2), rules, language="ru") == [0]


def test_words_of_concepts_are_stemmed_and_stopped_in_their_language() -> None:
    words, sizes = words_in(["die Ernten und die Ernte"], "de")
    assert sizes.tolist() == [5]
    assert words.hashes[1] == words.hashes[4]
    assert words.content.tolist() == [False, True, False, False, True]
    chinese, sizes = words_in(["甜菜"], "zh")
    assert sizes.tolist() == [2]
    assert chinese.content.all()
