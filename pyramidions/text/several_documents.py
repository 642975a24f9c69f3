"""Texts that hold several documents."""

from pyramidions.text.headings import HeadedText
from pyramidions.text.text_windows import holds_text

#: A line of ASCII's record separator alone stands between documents. To other readers it is an empty line.
DOCUMENT_END = "\n\x1e\n"


def documents_of(text: str) -> list[str]:
    """Return the documents of a text.

    Documents that `as_one` joined are returned without their names; a text without known headings is cut at
    `DOCUMENT_END`, and any other is one document.
    """
    if not isinstance(text, HeadedText):
        return [each for each in text.split(DOCUMENT_END) if holds_text(each)] or [text]
    if not text.is_joined:
        return [text]
    documents: list[list[str | int]] = []
    for number, line in enumerate(text.splitlines(keepends=True)):
        level = text.levels.get(number, 0)
        if level == 1:
            documents.append([])
        else:
            documents[-1] += [*[level - 1] * (level > 1), line]
    return [HeadedText.of(parts) for parts in documents]
