"""The documents of a split to the files of a data folder, from the last mark on."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, tee
from typing import Any, NamedTuple

import numpy as np

from pyramidions.data.folder import DataFolder
from pyramidions.data.growing import GrowingFile
from pyramidions.data.indexed import IndexedWriter
from pyramidions.data.manifest import InputHash, distribution
from pyramidions.data.parallel import chunks, ordered_map
from pyramidions.data.progress import note, progress_bar
from pyramidions.data.readers import Corpus, Document
from pyramidions.data.resume import Mark, load_mark, save_mark
from pyramidions.data.text import normalize
from pyramidions.data.tokenizer import EOS, Tokenizer
from pyramidions.errors import UserError

CHUNK = 16  # documents that a worker gets at a time
_DOCUMENTS_PER_MARK = 8192  # what an interruption costs at most


class Encoded(NamedTuple):
    """What a worker makes of a document; the ids end in `</s>`."""

    source: np.ndarray
    target: np.ndarray
    target_words: int


def encode(
    folder: DataFolder, split: str, corpus: Corpus, expected: dict[str, Any], model: Tokenizer, workers: int
) -> dict[str, Any]:
    """Write the files of a split, and go on where an interrupted run has left its last mark.

    Args:
        folder: to write to.
        split: `train`, `valid` or `test`.
        corpus: its documents.
        expected: the manifest's entry for these documents, from when they were checked.
        model: what to encode with.
        workers: number of processes that encode.

    Returns:
        The manifest's entry for the split.

    Raises:
        UserError: the documents are no longer those that were checked, or were others before the mark.
    """
    mark = load_mark(folder, split, model)
    digest, documents = InputHash(), iter(corpus)
    if mark.documents:
        _pass_over(documents, digest, mark, corpus, split, expected)
    with (
        _open_split(folder, split, model.vocab_size, mark) as writer,
        progress_bar(f"encoding {split}", expected["documents"], "documents", mark.documents) as bar,
    ):
        # The documents wait here for their ids, so that no worker sends them back.
        given, waiting = tee(chunks(documents, CHUNK))
        batches = ordered_map(_encode_chunk, given, workers, initializer=_receive, initargs=(model,))
        for chunk, batch in zip(waiting, batches, strict=True):
            for document, encoded in zip(chunk, batch, strict=True):
                digest.add(document)
                writer.add(document, encoded)
                if digest.documents % _DOCUMENTS_PER_MARK == 0:
                    save_mark(folder, split, model, writer.mark(digest))
            bar.update(len(batch))
        require_unchanged(corpus, digest, expected)
        save_mark(folder, split, model, writer.mark(digest))
    return writer.summary()


def require_unchanged(corpus: Corpus, digest: InputHash, expected: dict[str, Any]) -> None:
    """Raise a UserError where a corpus, read to its end, is not what it was when it was checked."""
    if digest.summary(corpus.skipped) != expected:
        raise _changed(corpus)


def _changed(corpus: Corpus) -> UserError:
    return UserError(f"{corpus.name} changed while it was being read.")


def _pass_over(
    documents: Iterator[Document], digest: InputHash, mark: Mark, corpus: Corpus, split: str, expected: dict[str, Any]
) -> None:
    """Read the documents before the mark, which must be those that it was made of."""
    note(f"goes on after {mark.documents:,} of {expected['documents']:,} documents of {split}")
    with progress_bar(f"passing over {split}", mark.documents, "documents") as bar:
        for document in islice(documents, mark.documents):
            digest.add(document)
            bar.update()
    # The interrupted run may have read what stood in the file for a while only.
    if digest.sha256 != mark.sha256:
        raise _changed(corpus)


class _SplitWriter:
    """Writes the files of a split, and makes marks."""

    def __init__(
        self, source: IndexedWriter, target: IndexedWriter, references: GrowingFile, target_words: list[int]
    ) -> None:
        self._source = source
        self._target = target
        self._references = references
        self._target_words = target_words

    def add(self, document: Document, encoded: Encoded) -> None:
        """Append one document."""
        self._source.add(encoded.source)
        self._target.add(encoded.target)
        record = {"id": document.id, "summary": document.target}
        self._references.write(json.dumps(record).encode() + b"\n")
        self._target_words.append(encoded.target_words)

    def mark(self, digest: InputHash) -> Mark:
        """Bring everything so far to the disk, and say how far that is."""
        for file in (self._source, self._target, self._references):
            file.sync()
        return Mark(
            digest.sha256,
            self._source.extent,
            self._target.extent,
            self._references.extent,
            self._source.lengths,
            self._target.lengths,
            np.array(self._target_words),
        )

    def summary(self) -> dict[str, Any]:
        """The manifest's entry for the split."""
        return {
            "documents": len(self._target_words),
            "source_tokens": distribution(self._source.lengths),
            "target_tokens": distribution(self._target.lengths),
            "target_words": distribution(np.array(self._target_words)),
        }


@contextmanager
def _open_split(folder: DataFolder, split: str, vocab_size: int, mark: Mark) -> Iterator[_SplitWriter]:
    """The files of a split, open for writing behind the mark."""
    with (
        IndexedWriter(folder.prefix(split, "source"), vocab_size, mark.source_lengths, mark.source) as source,
        IndexedWriter(folder.prefix(split, "target"), vocab_size, mark.target_lengths, mark.target) as target,
        GrowingFile(folder.references_path(split), mark.references) as references,
    ):
        yield _SplitWriter(source, target, references, mark.target_words.tolist())


_received: list[Tokenizer] = []


def _receive(model: Tokenizer) -> None:
    _received[:] = [model]


def _encode_chunk(documents: list[Document]) -> list[Encoded]:
    (model,) = _received
    dtype = np.uint32
    return [
        Encoded(
            np.array([*model.encode(document.source), EOS], dtype),
            np.array([*model.encode(document.target), EOS], dtype),
            len(normalize(document.target).split()),
        )
        for document in documents
    ]
