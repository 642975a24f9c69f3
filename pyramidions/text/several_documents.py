"""Texts that hold several documents."""

from pyramidions.text.headings import HeadedText
from pyramidions.text.text_windows import holds_text

#: ASCII's record separator parts the documents of a text. Whoever does not know it reads the end of a line.
DOCUMENT_END = "\x1e"


def documents_of(text: str) -> list[str]:
    """Return the documents of a text, those that `as_one` joined without their names; another text is one itself."""
    if not isinstance(text, HeadedText):
        return [each for each in text.split(DOCUMENT_END) if holds_text(each)] or [text]
    if not text.is_joined:
        return [text]
    found: list[list[str | int]] = []
    for number, line in enumerate(text.splitlines(keepends=True)):
        level = text.levels.get(number, 0)
        if level == 1:
            found.append([])
        else:
            found[-1] += [*[level - 1] * (level > 1), line]
    return [HeadedText.of(parts) for parts in found]
