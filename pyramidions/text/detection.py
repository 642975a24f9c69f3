"""Tells the language of a text."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from pyramidions.text.language import ENGLISH, LANGUAGES, Language
from pyramidions.text.text_windows import lines as lines_of
from pyramidions.text.words import words_of

#: Characters of a text in which its language is detected.
CHARACTERS = 4_000
# Least probability of a language, and least share of English stop words in an English text.
_SURE, _ENGLISH_SHARE = 0.9, 0.25


def detect_language(text: str) -> str:
    """Return the language of a text, one of `LANGUAGES`; `ENGLISH` if none is probable.

    py3langid (Lui and Baldwin 2012, "langid.py") detects it in the first `CHARACTERS` of lines that hold text. Its
    model takes most of a second to load; text with enough English stop words is taken as English without it. In other
    than Latin letters, the best guess counts. It does not know Tibetan, which its letters tell.
    """
    return detect_in_lines(lines_of(text))


def _detect(beginning: str) -> str:
    stop_words = Language(ENGLISH).stop_words
    known = [word in stop_words for word in words_of(beginning)]
    if sum(known) >= _ENGLISH_SHARE * len(known):
        return ENGLISH
    letters = list(filter(str.isalpha, beginning))
    if 2 * sum("\u0f00" <= letter <= "\u0fff" for letter in letters) > len(letters):
        return "bo"
    code, probability = _identifier().classify(beginning)
    is_latin = 2 * sum(map(str.isascii, letters)) >= len(letters)
    return str(code) if probability >= _SURE or not is_latin else ENGLISH


def detect_in_lines(lines: Iterable[str]) -> str:
    """Return the language of a text as `detect_language` does, by its first lines that hold text."""
    beginnings: list[str] = []
    left = CHARACTERS
    for line in filter(str.strip, lines):
        beginnings.append(line[:left])
        left -= len(beginnings[-1])
        if left <= 0:
            break
    return _detect("\n".join(beginnings))


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(set(identifier.labels) & set(LANGUAGES))
    return identifier
