"""Several documents as one, whose sections they are."""

from collections.abc import Iterable, Iterator

from pyramidions.documents.source import InputText, Origin
from pyramidions.text.headings import HeadedText, headed_lines

#: Documents whose names stand in that of the whole, at most.
_NAMED = 3


def as_one(documents: Iterable[InputText]) -> Iterator[InputText]:
    """Yield one document made of others: each is a section below its id or name, and its headings are a level lower.

    Args:
        documents: in order; without any, nothing is yielded.
    """
    read = list(documents)
    if not read:
        return
    names = [document.origin.name for document in read]
    name = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} documents"
    text = HeadedText.of(part for document in read for part in _section(document))
    text.is_joined = True
    yield InputText(Origin(name, None, 1), text, sum(document.size for document in read))


def documents_of(text: str) -> list[str]:
    """Return the texts of the documents that `as_one` made one of, without their names; another text is one itself."""
    if not isinstance(text, HeadedText) or not text.is_joined:
        return [text]
    found: list[list[str | int]] = []
    for number, line in enumerate(text.splitlines(keepends=True)):
        level = text.levels.get(number, 0)
        if level == 1:
            found.append([])
        else:
            found[-1] += [*[level - 1] * (level > 1), line]
    return [HeadedText.of(parts) for parts in found]


def _section(document: InputText) -> Iterator[str | int]:
    yield 1
    yield f"{' '.join((document.origin.id or document.origin.name).split())}\n"
    for line in headed_lines(document.lines or document.text):
        if line.level:
            yield line.level + 1
        yield f"{line.text}\n"
    yield "\n"
