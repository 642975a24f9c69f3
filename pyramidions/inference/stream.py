"""Summaries of a stream of documents, in bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from pyramidions.inference.chunking import pieces
from pyramidions.inference.documents import Document
from pyramidions.inference.explanation_page import ExplanationPage
from pyramidions.inference.summarizer import Summarizer
from pyramidions.inference.summary import Summary

BATCHES = 4  # that are read at a time, so that documents of like length can share one
_CHARACTERS = 16_000_000  # of documents that are held for one batch
_MORE_CHARACTERS = 4_000_000  # likewise, for more than one

#: Told how many more bytes of the files are done: each byte counts twice, when its text is read and when its summary
#: is written.
Progress = Callable[[float], object]


class Summarized(NamedTuple):
    """A document with the summaries of its pieces; of one that was read in one go, a single summary."""

    document: Document
    summaries: list[Summary]


class _Part(NamedTuple):
    """What is summarized at a time: a document or a piece of one."""

    document: Document
    text: str
    size: float  # bytes that it takes of its file
    is_last: bool


def summarize_documents(
    documents: Iterable[Document],
    summarizer: Summarizer,
    *,
    batch_size: int,
    in_pieces: bool,
    on_progress: Progress,
    **decoding: Any,
) -> Iterator[Summarized]:
    """Summarize documents that are asked for a few batches at a time.

    Args:
        documents: any number of them.
        summarizer: writes the summaries.
        batch_size: documents or pieces that are read at once.
        in_pieces: summarize a document that is longer than the model reads piece by piece, instead of its beginning.
        on_progress: told of the progress.
        decoding: options of `Summarizer.summarize`.

    Yields:
        The documents with their summaries, in order.

    Raises:
        UserError: as `Summarizer.summarize`.
    """
    summaries: list[Summary] = []
    for group in _groups(_parts(documents, summarizer, in_pieces), batch_size):
        texts = [part.text for part in group]
        on_read = _counted(on_progress, sum(part.size for part in group) / sum(map(len, texts)))
        found = summarizer.summarize(texts, **decoding, batch_size=batch_size, on_read=on_read)
        for part, summary in zip(group, found, strict=True):
            on_progress(part.size)
            summaries.append(summary)
            if part.is_last:
                yield Summarized(part.document, summaries)
                summaries = []


def explain_documents(
    documents: Iterable[Document],
    summarizer: Summarizer,
    page: ExplanationPage,
    *,
    in_pieces: bool,
    on_progress: Progress,
    **decoding: Any,
) -> Iterator[Summarized]:
    """Summarize documents one by one and put each on a page.

    Args:
        documents, summarizer, in_pieces, on_progress, decoding: as in `summarize_documents`.
        page: gets the explanations.

    Yields:
        The documents with their summaries, in order.

    Raises:
        UserError: as `Summarizer.explain`.
    """
    explain = summarizer.explain_pieces if in_pieces else partial(_explained_whole, summarizer)
    for document in documents:
        on_read = _counted(on_progress, document.size / len(document.text))
        summaries = page.add(document.name, explain(document.text, **decoding, on_read=on_read))
        on_progress(document.size)
        yield Summarized(document, summaries)


def _explained_whole(summarizer: Summarizer, text: str, **options: Any) -> list[Any]:
    return [summarizer.explain(text, **options)]


def _counted(on_progress: Progress, bytes_each: float) -> Callable[[int], object]:
    """Return what counts characters as bytes."""
    return lambda characters: on_progress(bytes_each * characters)


def _parts(documents: Iterable[Document], summarizer: Summarizer, in_pieces: bool) -> Iterator[_Part]:
    tokenizer, most = summarizer.model.tokenizer, summarizer.model.max_source_positions
    for document in documents:
        byte = document.size / len(document.text)
        texts = pieces(document.text, tokenizer, most) if in_pieces else iter([document.text])
        text = next(texts)
        for following in texts:
            yield _Part(document, text, byte * len(text), False)
            text = following
        yield _Part(document, text, byte * len(text), True)


def _groups(parts: Iterable[_Part], batch_size: int) -> Iterator[list[_Part]]:
    """Gather parts for several batches, fewer where they are long: what is held in memory is bounded."""
    group: list[_Part] = []
    characters = 0
    for part in parts:
        group.append(part)
        characters += len(part.text)
        enough = len(group) == BATCHES * batch_size or (len(group) >= batch_size and characters > _MORE_CHARACTERS)
        if enough or characters > _CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group
