"""Summaries of a stream of documents, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.data.section_types import SectionTypes
from pyramidions.errors import UserError
from pyramidions.files.atomic import atomic_file
from pyramidions.files.parallel import chunks
from pyramidions.inference.document_page import full
from pyramidions.inference.documents import InputText, Origin, Progress, Refuse
from pyramidions.inference.explanation import Explanation
from pyramidions.inference.explanation_page import MOST_TOKENS, ExplanationPage
from pyramidions.inference.line_breaks import LineBreaks
from pyramidions.inference.long_documents import LongReader, Part, Write, merge
from pyramidions.inference.reader import TokenizedText
from pyramidions.inference.search import DecodingSettings
from pyramidions.inference.share import blocks
from pyramidions.inference.summarizer import OnWritten, Summarizer
from pyramidions.inference.summary import Summary

BATCHES = 4  # read at a time, so that documents of like length can share one

_READING = 0.1  # of the time that it takes to read and to summarize a text


class Summarized(NamedTuple):
    """A document with its summary, or with the summaries of its pieces or sections."""

    origin: Origin
    summaries: list[Summary]


class _SizedPart(NamedTuple):
    """A part of a document."""

    origin: Origin
    part: Part
    size: float  # progress when its summary is written
    is_last: bool  # of its document


def summarize_documents(
    documents: Iterable[InputText],
    summarizer: Summarizer,
    decoding: DecodingSettings,
    *,
    batch_size: int,
    queries: int = 1,
    long: str = "truncate",
    types: SectionTypes | Path | None = None,
    select: str | Path | None = None,
    on_progress: Progress,
) -> Iterator[Summarized]:
    """Summarize documents, reading a few batches at a time.

    Args:
        documents: any number of them.
        summarizer: writes the summaries.
        decoding: how it writes them.
        batch_size: documents or parts that are read at once.
        queries: how many documents are made of each input, one for each query.
        long, types, select: how a document is read that is longer than the model reads, see `Summarizer.long_reader`.
        on_progress: progress callback.

    Yields:
        The documents with their summaries, in order.

    Raises:
        UserError: as `Summarizer.long_reader` and `Summarizer.write`.
    """
    options: dict[str, Any] = {"long": long, "types": types, "select": select, "on_progress": on_progress}
    options |= {"batch_size": batch_size, "queries": queries}
    for _, results in summarize_blocks(documents, summarizer, decoding, **options):
        yield from results


def block_size(batch_size: int) -> int:
    """Return how many inputs are summarized together, so that documents of like length can share batches."""
    return BATCHES * batch_size


def summarize_blocks(
    documents: Iterable[InputText],
    summarizer: Summarizer,
    decoding: DecodingSettings,
    *,
    batch_size: int,
    queries: int = 1,
    long: str = "truncate",
    types: SectionTypes | Path | None = None,
    select: str | Path | None = None,
    on_progress: Progress,
) -> Iterator[tuple[int, Iterator[Summarized]]]:
    """Summarize documents block by block: none is computed with one of another block.

    Args:
        documents, summarizer, decoding, batch_size, queries, long, types, select, on_progress: as in
            `summarize_documents`.

    Yields:
        Number and results of each block of `block_size` inputs that has some; they must be read before the next block
        is asked for.

    Raises:
        UserError: as `summarize_documents`.
    """
    reader = summarizer.long_reader(long, types, select)
    at_once = block_size(batch_size)

    def write(tokenized: list[TokenizedText], on_written: OnWritten | None = None) -> list[Summary]:
        return summarizer.write(tokenized, decoding, batch_size, on_written)

    for number, block in blocks(documents, at_once * queries):
        results = _summarized(_parts(block, reader, on_progress), write, at_once, on_progress)
        yield number, results if long != "merge" else _merged(results, reader, write, at_once)


def _merged(results: Iterable[Summarized], reader: LongReader, write: Write, at_once: int) -> Iterator[Summarized]:
    for group in chunks(results, at_once):
        queries = [result.summaries[0].query for result in group]
        merged = merge([result.summaries for result in group], reader.reader, write, queries)
        for result, summaries in zip(group, merged, strict=True):
            yield result._replace(summaries=summaries)


def _summarized(
    parts: Iterable[_SizedPart],
    write: Callable[[list[TokenizedText], OnWritten], list[Summary]],
    at_once: int,
    on_progress: Progress,
) -> Iterator[Summarized]:
    summaries: list[Summary] = []
    for group in chunks(parts, at_once):
        on_written = partial(_count, on_progress, [sized.size for sized in group])
        found = write([sized.part.tokenized for sized in group], on_written)
        for sized, summary in zip(group, found, strict=True):
            summaries.append(sized.part.about(summary))
            if sized.is_last:
                yield Summarized(sized.origin, summaries)
                summaries = []


def _count(on_progress: Progress, sizes: list[float], place: int) -> None:
    on_progress(sizes[place])


def explain_documents(
    documents: Iterable[InputText],
    summarizer: Summarizer,
    decoding: DecodingSettings,
    target: Path,
    *,
    model: str,
    long: str = "truncate",
    types: SectionTypes | Path | None = None,
    select: str | Path | None = None,
    on_progress: Progress,
    refuse: Refuse,
) -> Iterator[Summarized]:
    """Summarize documents one by one and put them on a page, which is written after the last.

    Args:
        documents: at least one.
        summarizer, decoding, long, types, select, on_progress: as in `summarize_documents`.
        target: the page.
        model: what the page calls the model.
        refuse: told of documents that found no room on the page.

    Yields:
        The documents with their summaries, in order.

    Raises:
        UserError: as `Summarizer.long_reader` and `Summarizer.explain_tokenized`; or ``long`` is "merge".
        OSError: the page cannot be written.
    """
    if long == "merge":
        raise UserError("A summary of summaries cannot be traced back to the document: `long` must not be 'merge'.")
    reader = summarizer.long_reader(long, types, select)
    page = ExplanationPage(model)
    # Opened before the work, so that a path that cannot be written is reported at once.
    with atomic_file(target) as file:
        for document in documents:
            explanations = _explanations(document, reader, summarizer, decoding, on_progress)
            summaries = page.add(document.origin.name, explanations, document.query)
            yield Summarized(document.origin, summaries)
        file.write(page.html().encode())
    if page.left_out:
        refuse(full(target, page.left_out, f"{MOST_TOKENS:,} tokens"))


def _explanations(
    document: InputText,
    reader: LongReader,
    summarizer: Summarizer,
    decoding: DecodingSettings,
    on_progress: Progress,
) -> Iterator[Explanation]:
    normalised = summarizer.model.tokenizer.normalize
    whole = LineBreaks(document.text, normalised)
    for _, part, size, _ in _parts([document], reader, on_progress):
        line_breaks = whole if part.text is None else LineBreaks(part.text, normalised)
        explanation = summarizer.explain_tokenized(part.tokenized, line_breaks, decoding)
        on_progress(size)
        summary = part.about(explanation.summary)._replace(sentences=explanation.sentences)
        yield replace(explanation, summary=summary)


def _read(document: InputText, reader: LongReader, on_progress: Progress) -> Iterator[Part]:
    bytes_each = 2 * _READING * document.size / len(document.text)

    def on_read(characters: int) -> None:
        on_progress(bytes_each * characters)

    return (
        part.of(document.number) for part in reader.parts(document.text, document.origin.name, on_read, document.query)
    )


def _parts(documents: Iterable[InputText], reader: LongReader, on_progress: Progress) -> Iterator[_SizedPart]:
    for document in documents:
        whole = 2 * (1 - _READING) * document.size
        left = whole
        parts = _read(document, reader, on_progress)
        part = next(parts)
        for following in parts:
            size = min(left, whole * sum(map(len, part.tokenized.tokens)) / len(document.text))
            left -= size
            yield _SizedPart(document.origin, part, size, False)
            part = following
        yield _SizedPart(document.origin, part, left, True)
