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
from pyramidions.inference.documents import InputText, Refuse
from pyramidions.inference.extraction_page import MOST_SENTENCES, ExtractionPage
from pyramidions.inference.extractor import Extractor, document_outline
from pyramidions.inference.stream import Progress
from pyramidions.text.outline import Outline


class Extracted(NamedTuple):
    """A document, of which only the outline is kept, and what was extracted from it."""

    document: InputText
    extraction: Extraction


class _Read(NamedTuple):
    document: InputText
    outline: Outline


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
    waiting: deque[_Read] = deque()

    def outlines() -> Iterator[tuple[Outline, str | None]]:
        for read in _outlined(documents, extractor.method, on_progress, refuse):
            waiting.append(read)
            yield read.outline, read.document.reference

    words = rules.budget.words
    total = without_headings = empty = over = 0
    for scores in extractor.rank(outlines(), rules.budget):
        document, outline = waiting.popleft()
        found = extract(outline, scores, rules)
        total += 1
        without_headings += not outline.has_sections
        empty += not found.sentences
        over += words is not None and len(found.text.split()) > words
        yield Extracted(document, found)
        on_progress(document.size)

    def these(count: int) -> str:
        return "The document" if total == 1 else f"{count:,} of {counted(total, 'document')}"

    if without_headings and extractor.method == "hiporank":
        note(f"{these(without_headings)} had no headings, and was read as one section.")
    if empty:
        note(f"{these(empty)} shared no word with the reference: the summary is empty.")
    if over:
        note(f"{these(over)} had no sentence within the budget: the summary is the best one, which is longer.")


def _outlined(documents: Iterable[InputText], method: str, on_progress: Progress, refuse: Refuse) -> Iterator[_Read]:
    for document in documents:
        on_progress(document.size)
        try:
            if method == ORACLE and document.reference is None:
                raise UserError(f"The method {ORACLE!r} needs a reference summary, which only a .jsonl file has.")
            outline = document_outline(document.text)
        except UserError as error:
            refuse(UserError(f"{document.origin.name}: {error}"))
            continue
        # The outline has all of the text that is needed.
        yield _Read(document._replace(text=""), outline)


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
