"""The language of a text."""

from itertools import cycle

import pytest
from texts_in_languages import PAPERS

from pyramidions.text import detection
from pyramidions.text.detection import detect_in_lines, detect_language
from pyramidions.text.outline import outline


@pytest.mark.parametrize("code", list(PAPERS))
def test_a_text_is_read_in_its_language(code: str) -> None:
    written = PAPERS[code]
    assert detect_language(written.text) == code
    read = outline(written.text)
    assert read.language == code
    assert list(read.texts) == written.sentences
    assert read.headings == written.headings


@pytest.mark.parametrize("text", ["", "12 34", "x = 3; y = foo(bar)", "Grad D: OK . Grad C: Right .", "El gato"])
def test_a_text_that_is_too_short_to_tell_counts_as_english(text: str) -> None:
    assert detect_language(text) == "en"


@pytest.mark.parametrize("text", ["Привет", "你好"])
def test_a_short_text_in_other_letters_does_not_count_as_english(text: str) -> None:
    assert detect_language(text) != "en"


def test_a_language_without_rules_of_ours_counts_as_one_that_has_them() -> None:
    assert detect_language("Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do.") in detection.LANGUAGES


def test_an_english_text_does_not_wait_for_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "_identifier", lambda: pytest.fail("the model was loaded"))
    assert detect_language("The model reads the first part of a paper, and that is enough.") == "en"


def test_no_more_lines_are_read_than_tell_the_language() -> None:
    assert detect_in_lines(cycle(PAPERS["de"].text.splitlines())) == "de"
