"""Several documents as one, whose sections they are."""

from collections.abc import Iterable, Iterator, Mapping

from pyramidions.base.arguments import checked
from pyramidions.base.errors import UserError
from pyramidions.documents.source import DocumentOrigin, InputText
from pyramidions.text.headings import HeadedText, Line, headed_lines
from pyramidions.text.text_windows import holds_text

#: Documents whose names stand in that of the whole, at most.
_NAMED = 3


@checked
def as_one(documents: Mapping[str, str]) -> str:
    """Return documents as one text: each is a section below its name, and its headings are a level lower.

    Extractors read it as one document. A summarizer that knows several documents, such as PRIMERA, gives each an equal
    share of what it reads.

    Args:
        documents: the text of each by its name, in order.

    Raises:
        UserError: there is none, or one holds no text.

    Examples:
        >>> from pyramidions import Extractor, as_one
        >>> Extractor("lead").extract(as_one({"a": "Bees fly.", "b": "Cats sleep."}), sentences=2).text
        'Bees fly. Cats sleep.'
    """
    if not documents:
        raise UserError("`documents` must hold a document, but is empty.")
    for name, text in documents.items():
        if not holds_text(text):
            raise UserError(f"`documents` must hold texts, but {name!r} holds none.")
        if not name.strip():
            raise UserError(f"`documents` must have names, but one is {name!r}.")
    return _joined((name, headed_lines(text)) for name, text in documents.items())


def read_as_one(documents: Iterable[InputText]) -> Iterator[InputText]:
    """Yield one document made of those that were read, by their ids or names."""
    read = list(documents)
    if not read:
        return
    names = [document.origin.name for document in read]
    name = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} documents"
    text = _joined((each.origin.id or each.origin.name, headed_lines(each.lines or each.text)) for each in read)
    yield InputText(DocumentOrigin(name, None, 1), text, sum(document.size for document in read))


def _joined(documents: Iterable[tuple[str, Iterable[Line]]]) -> HeadedText:
    text = HeadedText.of(part for name, lines in documents for part in _section(name, lines))
    text.is_joined = True
    return text


def _section(name: str, lines: Iterable[Line]) -> Iterator[str | int]:
    yield 1
    yield f"{' '.join(name.split())}\n"
    for line in lines:
        if line.level:
            yield line.level + 1
        yield f"{line.text}\n"
    yield "\n"
