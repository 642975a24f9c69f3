"""Extracts of a stream of documents, in bounded memory."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.documents.source import InputText, Origin, Progress, Refuse
from pyramidions.extract import SelectionRules
from pyramidions.extract.extraction import Extraction, extract
from pyramidions.extract.methods import ORACLE
from pyramidions.inference.extractor import Extractor, Ranked, document_outline
from pyramidions.text.outline import Outline

#: Characters between two steps of the progress bar.
_STEP = 2**16
#: How often the sentences of a document are read: twice for tf-idf, and once to tell which are fit, and to count words.
_TIMES = 4


class Extracted(NamedTuple):
    """What was extracted from a document, and its reference summary and its query, if there are some."""

    origin: Origin
    extraction: Extraction
    reference: str | None = None
    query: str | None = None


class _Half:
    """Counts half of the work on a document, by the characters that are read; `on_progress` gets bytes.

    Args:
        size: of the document, in bytes.
        times: that its characters are read.
        on_progress: progress callback.
    """

    def __init__(self, size: int, times: int, on_progress: Progress) -> None:
        self._left: float = size
        self._times = times
        self._on_progress = on_progress
        self._waiting = 0

    def add(self, characters: int) -> None:
        """Count characters; the bar need not know each sentence."""
        self._waiting += characters
        if self._waiting > _STEP:
            self._move(min(self._waiting / self._times, self._left))

    def finish(self) -> None:
        """Count what is left."""
        self._move(self._left)

    def _move(self, size: float) -> None:
        self._waiting, self._left = 0, self._left - size
        self._on_progress(size)


class _Read(NamedTuple):
    """The outline of a document, kept without its text."""

    origin: Origin
    reference: str | None
    query: str | None
    outline: Outline
    done: _Half


def extract_documents(
    documents: Iterable[InputText],
    extractor: Extractor,
    rules: SelectionRules,
    *,
    on_progress: Progress,
    refuse: Refuse,
) -> Iterator[Extracted]:
    """Extract from documents; a trained extractor reads some of them at once, and no more are held.

    Args:
        documents: any number of them.
        extractor: rates sentences.
        rules: select them.
        on_progress: progress callback.
        refuse: receives an error for each document without a sentence, without the oracle's reference, or with a query
            that asks for no word.

    Yields:
        The other documents with their extracts, in order.
    """
    waiting: deque[_Read] = deque()

    def outlines() -> Iterator[Ranked]:
        for read in _outlined(documents, extractor, on_progress, refuse):
            waiting.append(read)
            yield Ranked(read.outline, read.reference, read.query)

    for scores in extractor.rank(outlines(), rules.budget):
        origin, reference, query, outline, done = waiting.popleft()
        found = extract(outline, scores, rules)
        done.finish()
        yield Extracted(origin, found, reference, query)


def _outlined(
    documents: Iterable[InputText], extractor: Extractor, on_progress: Progress, refuse: Refuse
) -> Iterator[_Read]:
    for document in documents:
        reading = _Half(document.size, 1, on_progress)
        try:
            if extractor.method == ORACLE and document.reference is None:
                raise UserError(f"The method {ORACLE!r} needs a reference summary, which only a .jsonl file has.")
            extractor.check_query(document.query)
            outline = document_outline(document.lines or document.text, reading.add, extractor.language)
        except UserError as error:
            refuse(UserError(f"{document.origin.name}: {str(error).replace('`query`', 'its query', 1)}"))
            continue
        finally:
            reading.finish()
        ranking = _Half(document.size, _TIMES, on_progress)
        outline.sentences.on_read = ranking.add
        read = _Read(document.origin, document.reference, document.query, outline, ranking)
        # The outline has all of the text that is needed.
        del document
        yield read
