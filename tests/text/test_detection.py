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
    read = outline(written.text)
    assert detect_language(written.text) == read.language == code
    assert list(read.texts) == written.sentences and read.headings == written.headings


def test_a_text_that_is_too_short_to_tell_counts_as_english_but_in_other_letters() -> None:
    for text in ("", "12 34", "x = 3; y = foo(bar)", "Grad D: OK . Grad C: Right .", "El gato"):
        assert detect_language(text) == "en", text
    assert "en" not in map(detect_language, ("Привет", "你好"))
    assert detect_language("སྦྲང་མ་དགུན་ཁར་ཉལ་གྱི་རེད།") == "bo"
    # A language without rules of ours counts as one that has them.
    assert detect_language("Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do.") in detection.LANGUAGES


def test_no_more_lines_are_read_than_tell_the_language_and_english_waits_for_no_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert detect_in_lines(cycle(PAPERS["de"].text.splitlines())) == "de"
    monkeypatch.setattr(detection, "_identifier", lambda: pytest.fail("the model was loaded"))
    assert detect_language("The model reads the first part of a paper, and that is enough.") == "en"
