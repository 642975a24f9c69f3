"""Restores the line breaks of a text in its tokens."""

import re
from collections.abc import Callable, Iterable, Iterator

from pyramidions.text.normalization import normalize
from pyramidions.text.text_windows import windows
from pyramidions.text.tokenizer import SPACE
from pyramidions.text.tokenizer.sentencepiece import NAME_END_SURFACE

_LINE_END = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")  # those of str.splitlines
_LINE, _PARAGRAPH = "\n", "\n\n"
_SPACES = str.maketrans("", "", f" {SPACE}")


class LineBreaks:
    """Puts the line breaks of a text back before its tokens, which lost them when the text was normalised.

    Tokens and text share their visible characters, in order: a token begins a line if as many of them stand before it
    as before a line of the text. The text is given as it was; ``normalised`` is what the tokenizer makes of one.
    """

    def __init__(self, text: str, normalised: Callable[[str], str] | None = None) -> None:
        self._breaks = _breaks(text, normalised or normalize)
        self._next = next(self._breaks, None)
        self._passed = 0  # visible characters

    def restore(self, tokens: Iterable[str]) -> list[str]:
        r"""Return tokens with "\n" in place of the space before them where a line begins, "\n\n" for a paragraph.

        They come after those of the last call. Empty tokens stay empty. Markers become empty: they are no text.
        """
        return [self._restored(token) if token not in ("", NAME_END_SURFACE) else "" for token in tokens]

    def _restored(self, token: str) -> str:
        found = ""
        while self._next is not None and self._next[0] <= self._passed:
            found = max(found, self._next[1])
            self._next = next(self._breaks, None)
        self._passed += _visible(token)
        return f"{found}{token.lstrip(' ') or ' '}" if found else token


def _breaks(text: str, normalised: Callable[[str], str]) -> Iterator[tuple[int, str]]:
    """Yield the number of visible characters before each line but the first, and the break before it."""
    before, found = 0, ""
    for line in _lines(text):
        visible = sum(_visible(normalised(window)) for window in windows(line))
        if visible and before:
            yield before, found
        found = _LINE if visible else _PARAGRAPH
        before += visible


def _lines(text: str) -> Iterator[str]:
    start = 0
    for end in _LINE_END.finditer(text):
        yield text[start : end.start()]
        start = end.end()
    yield text[start:]


def _visible(text: str) -> int:
    return len(text.translate(_SPACES))
