"""Extracts of a stream of documents, in bounded memory."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pyramidions.errors import UserError
from pyramidions.extract import SelectionRules
from pyramidions.extract.extraction import Extraction, extract
from pyramidions.extract.methods import ORACLE
from pyramidions.files.atomic import atomic_file
from pyramidions.files.progress import counted
from pyramidions.inference.document_page import full
from pyramidions.inference.documents import InputText, Progress, Refuse
from pyramidions.inference.extraction_page import MOST_SENTENCES, ExtractionPage
from pyramidions.inference.extractor import Extractor, document_outline
from pyramidions.inference.share import blocks
from pyramidions.text.outline import Outline

#: Inputs that a trained extractor reads together.
BLOCK = 32
#: Characters between two steps of the progress bar.
_STEP = 2**16
#: How often the sentences of a document are read: twice for tf-idf, and once to tell which are fit, and to count words.
_TIMES = 4


class Extracted(NamedTuple):
    """A document, of which only the outline is kept, and what was extracted from it."""

    document: InputText
    extraction: Extraction


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
    document: InputText
    outline: Outline
    done: _Half


def extract_documents(
    documents: Iterable[InputText],
    extractor: Extractor,
    rules: SelectionRules,
    *,
    on_progress: Progress,
    refuse: Refuse,
    note: Callable[[str], object],
) -> Iterator[Extracted]:
    """Extract from documents; a trained extractor reads some of them at once, and no more are held.

    Args:
        documents: any number of them.
        extractor: rates sentences.
        rules: by which they are selected.
        on_progress: progress callback.
        refuse: told of each document without a sentence, or without the reference that the oracle needs.
        note: told at the end what a reader of the extracts should know.

    Yields:
        The other documents with their extracts, in order.
    """
    found = extract_blocks(documents, extractor, rules, on_progress=on_progress, refuse=refuse, note=note)
    for _, results in found:
        yield from results


def extract_blocks(
    documents: Iterable[InputText],
    extractor: Extractor,
    rules: SelectionRules,
    *,
    on_progress: Progress,
    refuse: Refuse,
    note: Callable[[str], object],
) -> Iterator[tuple[int, Iterator[Extracted]]]:
    """Extract from documents block by block: none is rated with one of another block.

    Args:
        documents, extractor, rules, on_progress, refuse, note: as in `extract_documents`.

    Yields:
        Number and results of each block of `BLOCK` inputs that has some; they must be read before the next block is
        asked for.
    """
    counts = _Counts()

    def extracted(block: Iterator[InputText]) -> Iterator[Extracted]:
        waiting: deque[_Read] = deque()

        def outlines() -> Iterator[tuple[Outline, str | None]]:
            for read in _outlined(block, extractor.method, on_progress, refuse):
                waiting.append(read)
                yield read.outline, read.document.reference

        for scores in extractor.rank(outlines(), rules.budget):
            document, outline, done = waiting.popleft()
            found = extract(outline, scores, rules)
            done.finish()
            counts.add(outline, found, rules.budget.words)
            yield Extracted(document, found)

    for number, block in blocks(documents, BLOCK):
        yield number, extracted(block)
    for sentence in counts.sentences(extractor.method):
        note(sentence)


class _Counts:
    """Counts the documents of which a reader of the extracts should know something."""

    def __init__(self) -> None:
        self._total = self._without_headings = self._empty = self._over = 0

    def add(self, outline: Outline, found: Extraction, words: int | None) -> None:
        """Count a document, of whose extract there may be so many words."""
        self._total += 1
        self._without_headings += not outline.has_sections
        self._empty += not found.sentences
        self._over += words is not None and len(found.text.split()) > words

    def sentences(self, method: str) -> Iterator[str]:
        """Yield what should be known."""
        if self._without_headings and method == "hiporank":
            yield f"{self._these(self._without_headings)} had no headings and counted as one section."
        if self._empty:
            yield f"{self._these(self._empty)} shared no word with the reference: the summary is empty."
        if self._over:
            these = self._these(self._over)
            yield f"{these} had no sentence within the budget: the summary is the best one, which is longer."

    def _these(self, count: int) -> str:
        return "The document" if self._total == 1 else f"{count:,} of {counted(self._total, 'document')}"


def _outlined(documents: Iterable[InputText], method: str, on_progress: Progress, refuse: Refuse) -> Iterator[_Read]:
    for document in documents:
        reading = _Half(document.size, 1, on_progress)
        try:
            if method == ORACLE and document.reference is None:
                raise UserError(f"The method {ORACLE!r} needs a reference summary, which only a .jsonl file has.")
            outline = document_outline(document.lines or document.text, reading.add)
        except UserError as error:
            refuse(UserError(f"{document.origin.name}: {error}"))
            continue
        finally:
            reading.finish()
        # The outline has all of the text that is needed.
        ranking = _Half(document.size, _TIMES, on_progress)
        outline.sentences.on_read = ranking.add
        yield _Read(document._replace(text="", lines=None), outline, ranking)


def explain_extracts(
    results: Iterable[Extracted], target: Path, extractor: Extractor, rules: SelectionRules, *, refuse: Refuse
) -> Iterator[Extracted]:
    """Put extracts on a page, which is written after the last.

    Args:
        results: of `extract_documents`.
        target: the page.
        extractor, rules: as there; the page names them.
        refuse: told of documents that found no room on the page.

    Yields:
        The results.

    Raises:
        OSError: the page cannot be written.
    """
    bounds = {name: f"{most:,}" for name, most in rules.budget._asdict().items() if most is not None}
    page = ExtractionPage(extractor.method, settings={**bounds, "redundancy": rules.redundancy})
    # Opened before the work, so that a path that cannot be written is reported at once.
    with atomic_file(target) as file:
        for result in results:
            page.add(result.document.origin.name, result.extraction, result.document.reference)
            yield result
        file.write(page.html().encode())
    if page.left_out:
        refuse(full(target, page.left_out, f"{MOST_SENTENCES:,} sentences"))
