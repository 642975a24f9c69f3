"""Summaries of a stream of documents, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pyramidions.files.atomic import atomic_file
from pyramidions.files.parallel import chunks
from pyramidions.inference.document_page import full
from pyramidions.inference.documents import InputText, Origin, Refuse
from pyramidions.inference.explanation_page import MOST_TOKENS, ExplanationPage
from pyramidions.inference.line_breaks import LineBreaks
from pyramidions.inference.reader import Reader, TokenizedText
from pyramidions.inference.search import DecodingSettings
from pyramidions.inference.summarizer import Summarizer
from pyramidions.inference.summary import Summary

BATCHES = 4  # read at a time, so that documents of like length can share one

#: Progress callback: bytes done since the last call. Each byte of a file counts twice: when its text is read and when
#: its summary is written.
Progress = Callable[[float], object]


class Summarized(NamedTuple):
    """A document with the summaries of its pieces, or with the summary of its head."""

    origin: Origin
    summaries: list[Summary]


class _Part(NamedTuple):
    """A document or a piece of one."""

    origin: Origin
    tokenized: TokenizedText
    size: float  # bytes that it takes of its file
    is_last: bool  # of its document


def summarize_documents(
    documents: Iterable[InputText],
    summarizer: Summarizer,
    decoding: DecodingSettings,
    *,
    batch_size: int,
    in_pieces: bool,
    on_progress: Progress,
) -> Iterator[Summarized]:
    """Summarize documents, reading a few batches at a time.

    Args:
        documents: any number of them.
        summarizer: writes the summaries.
        decoding: how it writes them.
        batch_size: documents or pieces that are read at once.
        in_pieces: summarize a document that is longer than the model reads piece by piece, instead of its beginning.
        on_progress: progress callback.

    Yields:
        The documents with their summaries, in order.

    Raises:
        UserError: as `Summarizer.write`.
    """
    summaries: list[Summary] = []
    for group in chunks(_parts(documents, summarizer.reader, in_pieces, on_progress), BATCHES * batch_size):
        found = summarizer.write([part.tokenized for part in group], decoding, batch_size)
        for part, summary in zip(group, found, strict=True):
            on_progress(part.size)
            summaries.append(summary)
            if part.is_last:
                yield Summarized(part.origin, summaries)
                summaries = []


def explain_documents(
    documents: Iterable[InputText],
    summarizer: Summarizer,
    decoding: DecodingSettings,
    target: Path,
    *,
    model: str,
    in_pieces: bool,
    on_progress: Progress,
    refuse: Refuse,
) -> Iterator[Summarized]:
    """Summarize documents one by one and put them on a page, which is written after the last.

    Args:
        documents: at least one.
        summarizer, decoding, in_pieces, on_progress: as in `summarize_documents`.
        target: the page.
        model: what the page calls the model.
        refuse: told of documents that found no room on the page.

    Yields:
        The documents with their summaries, in order.

    Raises:
        UserError: as `Summarizer.explain_tokenized`.
        OSError: the page cannot be written.
    """
    page = ExplanationPage(model)
    # Opened before the work, so that a path that cannot be written is reported at once.
    with atomic_file(target) as file:
        for document in documents:
            line_breaks = LineBreaks(document.text)
            parts = _tokenized(document, summarizer.reader, in_pieces, on_progress)
            explanations = (summarizer.explain_tokenized(part, line_breaks, decoding) for part in parts)
            summaries = page.add(document.origin.name, explanations)
            on_progress(document.size)
            yield Summarized(document.origin, summaries)
        file.write(page.html().encode())
    if page.left_out:
        refuse(full(target, page.left_out, f"{MOST_TOKENS:,} tokens"))


def _tokenized(document: InputText, reader: Reader, in_pieces: bool, on_progress: Progress) -> Iterator[TokenizedText]:
    """Yield the pieces of a document, or its head alone."""
    bytes_each = document.size / len(document.text)

    def on_read(characters: int) -> None:
        on_progress(bytes_each * characters)

    if in_pieces:
        yield from reader.pieces(document.text, document.origin.name, on_read)
    else:
        yield reader.head(document.text, document.origin.name, on_read)


def _parts(documents: Iterable[InputText], reader: Reader, in_pieces: bool, on_progress: Progress) -> Iterator[_Part]:
    for document in documents:
        left: float = document.size
        tokenized = _tokenized(document, reader, in_pieces, on_progress)
        part = next(tokenized)
        for following in tokenized:
            size = min(left, document.size * sum(map(len, part.tokens)) / len(document.text))
            left -= size
            yield _Part(document.origin, part, size, False)
            part = following
        yield _Part(document.origin, part, left, True)
