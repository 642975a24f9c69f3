"""Summaries of a stream of documents, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, TypeVar

from pyramidions.base.errors import UserError
from pyramidions.documents.source import DocumentOrigin, InputText, Progress, Refuse, raised
from pyramidions.files.parallel import chunks
from pyramidions.inference.explanation import Explanation
from pyramidions.inference.explanation_page import ExplanationPage
from pyramidions.inference.line_breaks import LineBreaks
from pyramidions.inference.long_documents import LongReader, Part, merge
from pyramidions.inference.reader import TokenizedText
from pyramidions.inference.search import DecodingSettings
from pyramidions.inference.summarizer import Summarizer, UnwritableError
from pyramidions.inference.summary import Summary

BATCHES = 4  # read at a time, so that documents of like length can share one
_READING = 0.1  # of the time that it takes to read and to summarize a text

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


class Summarized(NamedTuple):
    """A document with its summary, or with the summaries of its pieces or sections."""

    origin: DocumentOrigin
    summaries: list[Summary]


class _SizedPart(NamedTuple):
    """A part of a document."""

    origin: DocumentOrigin
    part: Part
    size: float  # progress when its summary is written
    is_last: bool  # of its document


def inputs_together(batch_size: int) -> int:
    """Return how many inputs are summarized together, so that documents of like length can share batches."""
    return BATCHES * batch_size


class Stream:
    """Summarizes documents, and passes over those that it cannot; the reader is `Summarizer.long_reader`.

    ``refuse`` receives the error of each document that holds no text for the model, is made of too many documents, or
    has a part that cannot be summarized (`UnwritableError`); by default, the error is raised.
    """

    def __init__(
        self,
        summarizer: Summarizer,
        reader: LongReader,
        decoding: DecodingSettings,
        on_progress: Progress = lambda _: None,
        refuse: Refuse = raised,
    ) -> None:
        self._summarizer, self._reader, self._decoding = summarizer, reader, decoding
        self._on_progress, self._refuse = on_progress, refuse

    def summarized(self, documents: Iterable[InputText], batch_size: int, copied: bool = False) -> Iterator[Summarized]:
        """Yield documents with their summaries, in order, reading a few batches at a time."""
        results = self._of_parts(documents, batch_size, copied)
        if self._reader.long != "merge":
            yield from results
            return

        def merged(group: Sequence[Summarized]) -> list[list[Summary]]:
            queries = [result.summaries[0].query for result in group]
            return merge([result.summaries for result in group], self._reader.reader, write, queries)

        def write(tokenized: list[TokenizedText]) -> list[Summary]:
            return self._summarizer.write(tokenized, self._decoding, batch_size, None, copied)

        for group in chunks(results, inputs_together(batch_size)):
            for result, found in zip(group, _each(merged, group), strict=True):
                if isinstance(found, UnwritableError):
                    self._refuse(_named(found, result.origin))
                else:
                    yield result._replace(summaries=found)

    def _of_parts(self, documents: Iterable[InputText], batch_size: int, copied: bool) -> Iterator[Summarized]:
        summaries: list[Summary] = []
        failed: UnwritableError | None = None
        for group in chunks(self._parts(documents), inputs_together(batch_size)):
            for sized, written in zip(group, self._written(group, batch_size, copied), strict=True):
                if isinstance(written, UnwritableError):
                    failed = failed or written
                else:
                    summaries.append(sized.part.about(written))
                if not sized.is_last:
                    continue
                if failed is None:
                    yield Summarized(sized.origin, summaries)
                else:
                    self._refuse(_named(failed, sized.origin))
                summaries, failed = [], None

    def _written(
        self, group: Sequence[_SizedPart], batch_size: int, copied: bool
    ) -> Sequence[Summary | UnwritableError]:
        """Write summaries of parts, and count each part once."""
        left = {id(sized): sized.size for sized in group}

        def written(some: Sequence[_SizedPart]) -> list[Summary]:
            def on_written(place: int) -> None:
                self._on_progress(left.pop(id(some[place]), 0.0))

            tokenized = [sized.part.tokenized for sized in some]
            return self._summarizer.write(tokenized, self._decoding, batch_size, on_written, copied)

        found = _each(written, group)
        self._on_progress(sum(left.values()))
        return found

    def explained(self, documents: Iterable[InputText], page: ExplanationPage) -> Iterator[Summarized]:
        """Yield documents with their summaries, one by one, and put them on a page."""
        for document in documents:
            parts = self._parts([document])
            if (first := next(parts, None)) is None:
                continue
            explanations = self._explanations(document, chain([first], parts))
            room = page.left
            try:
                summaries = page.add(document.origin.name, explanations, document.query)
            except UnwritableError as error:
                page.left = room
                self._on_progress(sum(sized.size for sized in parts))
                self._refuse(_named(error, document.origin))
                continue
            yield Summarized(document.origin, summaries)

    def _explanations(self, document: InputText, parts: Iterable[_SizedPart]) -> Iterator[Explanation]:
        normalised = self._summarizer.model.tokenizer.normalize
        whole = LineBreaks(document.text, normalised)
        for _, part, size, _ in parts:
            line_breaks = whole if part.text is None else LineBreaks(part.text, normalised)
            try:
                explanation = self._summarizer.explain_tokenized(part.tokenized, line_breaks, self._decoding)
            finally:
                self._on_progress(size)
            summary = part.about(explanation.summary)._replace(sentences=explanation.sentences)
            yield replace(explanation, summary=summary)

    def _read(self, document: InputText) -> Iterator[Part]:
        bytes_each = 2 * _READING * document.size / len(document.text)

        def on_read(characters: int) -> None:
            self._on_progress(bytes_each * characters)

        read = self._reader.parts(document.text, document.origin.name, on_read, document.query)
        return (part.of(document.number) for part in read)

    def _parts(self, documents: Iterable[InputText]) -> Iterator[_SizedPart]:
        for document in documents:
            whole = 2 * (1 - _READING) * document.size
            left = whole
            parts = self._read(document)
            try:
                part = next(parts)
            except UserError as error:
                self._on_progress(whole)
                self._refuse(error)
                continue
            for following in parts:
                size = min(left, whole * sum(map(len, part.tokenized.tokens)) / len(document.text))
                left -= size
                yield _SizedPart(document.origin, part, size, False)
                part = following
            yield _SizedPart(document.origin, part, left, True)


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


def _named(error: UserError, origin: DocumentOrigin) -> UserError:
    return UnwritableError(f"{origin.name}: {error}")
