"""Summaries of a stream of documents, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, TypeVar

from pyramidions.base.errors import UserError
from pyramidions.documents.source import InputText, Origin, Progress, Refuse
from pyramidions.files.parallel import chunks
from pyramidions.inference.explanation import Explanation
from pyramidions.inference.explanation_page import ExplanationPage
from pyramidions.inference.line_breaks import LineBreaks
from pyramidions.inference.long_documents import LongReader, Part, Write, merge
from pyramidions.inference.reader import TokenizedText
from pyramidions.inference.search import DecodingSettings
from pyramidions.inference.summarizer import OnWritten, Summarizer, UnwritableError
from pyramidions.inference.summary import Summary

BATCHES = 4  # read at a time, so that documents of like length can share one

_READING = 0.1  # of the time that it takes to read and to summarize a text


_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


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


def _raise(error: UserError) -> None:
    raise error


def summarize_documents(
    documents: Iterable[InputText],
    summarizer: Summarizer,
    reader: LongReader,
    decoding: DecodingSettings,
    *,
    batch_size: int,
    on_progress: Progress,
    copied: bool = False,
    refuse: Refuse = _raise,
) -> Iterator[Summarized]:
    """Summarize documents, reading a few batches at a time.

    Args:
        documents: any number of them.
        summarizer: writes the summaries.
        reader: of the summarizer (`Summarizer.long_reader`); says how a document is read that is longer than the model
            reads.
        decoding: how summaries are written.
        batch_size: documents or parts that are read at once.
        on_progress: progress callback.
        copied: as in `Summarizer.summarize`.
        refuse: receives the error of each document that holds no text for the model, is made of too many documents, or
            has a part that cannot be summarized (`UnwritableError`); by default, the error is raised.

    Yields:
        The other documents with their summaries, in order.
    """
    at_once = inputs_together(batch_size)

    def write(tokenized: list[TokenizedText], on_written: OnWritten | None = None) -> list[Summary]:
        return summarizer.write(tokenized, decoding, batch_size, on_written, copied)

    results = _summarized(_parts(documents, reader, on_progress, refuse), write, at_once, on_progress, refuse)
    yield from results if reader.long != "merge" else _merged(results, reader, write, at_once, refuse)


def inputs_together(batch_size: int) -> int:
    """Return how many inputs are summarized together, so that documents of like length can share batches."""
    return BATCHES * batch_size


def _merged(
    results: Iterable[Summarized], reader: LongReader, write: Write, at_once: int, refuse: Refuse
) -> Iterator[Summarized]:
    def merged(group: Sequence[Summarized]) -> list[list[Summary]]:
        queries = [result.summaries[0].query for result in group]
        return merge([result.summaries for result in group], reader.reader, write, queries)

    for group in chunks(results, at_once):
        for result, found in zip(group, _each(merged, group), strict=True):
            if isinstance(found, UnwritableError):
                refuse(_named(found, result.origin))
            else:
                yield result._replace(summaries=found)


def _summarized(
    parts: Iterable[_SizedPart],
    write: Callable[[list[TokenizedText], OnWritten], list[Summary]],
    at_once: int,
    on_progress: Progress,
    refuse: Refuse,
) -> Iterator[Summarized]:
    summaries: list[Summary] = []
    failed: UnwritableError | None = None
    for group in chunks(parts, at_once):
        for sized, written in zip(group, _written(group, write, on_progress), strict=True):
            if isinstance(written, UnwritableError):
                failed = failed or written
            else:
                summaries.append(sized.part.about(written))
            if not sized.is_last:
                continue
            if failed is None:
                yield Summarized(sized.origin, summaries)
            else:
                refuse(_named(failed, sized.origin))
            summaries, failed = [], None


def _written(
    group: Sequence[_SizedPart], write: Callable[[list[TokenizedText], OnWritten], list[Summary]], on_progress: Progress
) -> Sequence[Summary | UnwritableError]:
    """Write summaries of parts, and count each part once."""
    left = {id(sized): sized.size for sized in group}

    def written(some: Sequence[_SizedPart]) -> list[Summary]:
        tokenized = [sized.part.tokenized for sized in some]
        return write(tokenized, lambda place: on_progress(left.pop(id(some[place]), 0.0)))

    found = _each(written, group)
    on_progress(sum(left.values()))
    return found


def _each(
    work: Callable[[Sequence[_Given]], Sequence[_Made]], given: Sequence[_Given]
) -> list[_Made | UnwritableError]:
    """Do the work on all that is given together; if something cannot be summarized, on one half and on the other."""
    try:
        return [*work(given)]
    except UnwritableError as error:
        if len(given) == 1:
            return [error]
    half = len(given) // 2
    return [*_each(work, given[:half]), *_each(work, given[half:])]


def _named(error: UnwritableError, origin: Origin) -> UserError:
    return UnwritableError(f"{origin.name}: {error}")


def explain_documents(
    documents: Iterable[InputText],
    summarizer: Summarizer,
    reader: LongReader,
    decoding: DecodingSettings,
    page: ExplanationPage,
    *,
    on_progress: Progress,
    refuse: Refuse = _raise,
) -> Iterator[Summarized]:
    """Summarize documents one by one and put them on a page.

    Args:
        documents, summarizer, reader, decoding, on_progress, refuse: as in `summarize_documents`.
        page: gets the documents.

    Yields:
        The other documents with their summaries, in order.

    Raises:
        UnwritableError: see ``refuse``.
    """
    for document in documents:
        parts = _parts([document], reader, on_progress, refuse)
        if (first := next(parts, None)) is None:
            continue
        explanations = _explanations(document, chain([first], parts), summarizer, decoding, on_progress)
        room = page.left
        try:
            summaries = page.add(document.origin.name, explanations, document.query)
        except UnwritableError as error:
            page.left = room
            on_progress(sum(sized.size for sized in parts))
            refuse(_named(error, document.origin))
            continue
        yield Summarized(document.origin, summaries)


def _explanations(
    document: InputText,
    parts: Iterable[_SizedPart],
    summarizer: Summarizer,
    decoding: DecodingSettings,
    on_progress: Progress,
) -> Iterator[Explanation]:
    normalised = summarizer.model.tokenizer.normalize
    whole = LineBreaks(document.text, normalised)
    for _, part, size, _ in parts:
        line_breaks = whole if part.text is None else LineBreaks(part.text, normalised)
        try:
            explanation = summarizer.explain_tokenized(part.tokenized, line_breaks, decoding)
        finally:
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


def _parts(
    documents: Iterable[InputText], reader: LongReader, on_progress: Progress, refuse: Refuse
) -> Iterator[_SizedPart]:
    for document in documents:
        whole = 2 * (1 - _READING) * document.size
        left = whole
        parts = _read(document, reader, on_progress)
        try:
            part = next(parts)
        except UserError as error:
            on_progress(whole)
            refuse(error)
            continue
        for following in parts:
            size = min(left, whole * sum(map(len, part.tokenized.tokens)) / len(document.text))
            left -= size
            yield _SizedPart(document.origin, part, size, False)
            part = following
        yield _SizedPart(document.origin, part, left, True)
