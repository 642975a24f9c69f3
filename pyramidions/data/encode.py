"""Encodes the documents of a split and writes its files."""

import json
from array import array
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import tee
from typing import Any, NamedTuple

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.data.folder import DataFolder, Side
from pyramidions.data.indexed import IndexedWriter
from pyramidions.data.labels import CHOSEN, NUM_LABELS, SENTENCE, LabelledSource, labelled
from pyramidions.data.manifest import InputHash, distribution
from pyramidions.data.pairing import Pairing
from pyramidions.data.readers import Corpus, Document
from pyramidions.files.atomic import sync
from pyramidions.files.parallel import chunks, ordered_map
from pyramidions.files.progress import counted, progress_bar
from pyramidions.text.normalization import normalize
from pyramidions.text.tokenizer import Tokenizer
from pyramidions.text.word_tags import NUM_TAGS, word_tags
from pyramidions.text.words import count_words

CHUNK = 16  # documents that a worker gets at a time


class EncodedPair(NamedTuple):
    """A text and its summary as ids, which end in `</s>`; the labels of its sentences, if there are any.

    Where documents have queries, the text begins with one, which ends in `</s>`, too.
    """

    source: np.ndarray
    target: np.ndarray
    target_words: int
    labels: np.ndarray
    query_tokens: int = 0  # number of ids of the query
    name: tuple[str, str] | None = None  # (id, summary) where they are not those of the document


class EncodedDocument(NamedTuple):
    """The pairs that a document became, and whether it was taken as a whole although it was to be divided."""

    pairs: list[EncodedPair]
    is_whole: bool = False


@dataclass(frozen=True)
class Encoder:
    """Turns documents, some at a time, into ids."""

    model: Tokenizer
    labels: bool = False  # of their sentences
    pairing: Pairing | None = None  # what makes pairs of a document; None leaves it as it is
    tags: str | None = None  # a spaCy pipeline that tags their words

    def __call__(self, documents: list[Document]) -> list[EncodedDocument]:
        return [self._encoded(document) for document in documents]

    def _encoded(self, document: Document) -> EncodedDocument:
        if self.pairing is None:
            return EncodedDocument([self._pair(document)])
        pairs, own = self.pairing(document, self.model), (document.id, document.target)
        names = [None if (each.id, each.target) == own else (each.id, each.target) for each in pairs.documents]
        found = [self._pair(each)._replace(name=name) for each, name in zip(pairs.documents, names, strict=True)]
        return EncodedDocument(found, pairs.is_whole)

    def _pair(self, document: Document) -> EncodedPair:
        model = self.model
        if self.labels:
            source = labelled(document, model)
        else:
            encode = None if self.tags is None else self._tagged
            source = LabelledSource(model.encode_documents(document.source, encode), np.empty(0, np.uint8))
        query = [] if document.query is None else model.asked(document.query)
        return EncodedPair(
            np.array([*query, *source.ids, model.eos], np.uint32),
            np.array([*model.encode(document.target), model.eos], np.uint32),
            count_words(normalize(document.target)),
            source.labels,
            len(query),
        )

    def _tagged(self, text: str) -> list[int]:
        """Return ids of a text, each plus the number of pieces times its tag."""
        surfaces = [surface for some in self.model.surfaces([text]) for surface in some]
        tags = self.model.vocab_size * word_tags(surfaces, str(self.tags))
        return (np.array(self.model.ids_of(surfaces)) + tags).tolist()


def encode(
    folder: DataFolder, split: str, corpus: Corpus, expected: dict[str, Any], encoder: Encoder, workers: int
) -> dict[str, Any]:
    """Write the files of a split."""
    digest, pairing = InputHash(), encoder.pairing
    ids = encoder.model.vocab_size * (1 if encoder.tags is None else NUM_TAGS)
    with progress_bar(f"encoding {split}", expected["documents"], "documents") as bar, ExitStack() as opened:
        files = _SplitFiles(folder, split, ids, encoder.labels, opened)
        # The documents stay here and meet their ids again, so that no worker sends them back.
        given, waiting = tee(chunks(corpus, CHUNK))
        batches = ordered_map(encoder, given, workers)
        for chunk, batch in zip(waiting, batches, strict=True):
            for document, encoded in zip(chunk, batch, strict=True):
                digest.add(document)
                files.add(document, encoded)
            bar.update(len(batch))
        require_unchanged(corpus, digest, expected)
        files.sync()
    about = files.about(corpus.has_queries)
    if pairing is None:
        return about
    made_of = {"documents": digest.documents, "whole": files.whole, "left_out": digest.documents - files.paired}
    for number, because, what in (
        (files.whole, pairing.whole_because, "taken as a whole"),
        (made_of["left_out"], pairing.left_out_because, "left out"),
    ):
        if number:
            has, are = ("has", "is") if number == 1 else ("have", "are")
            of = counted(digest.documents, "document")
            note(f"{split}: {number:,} of {of} {has} {because}, and {are} {what}")
    return about | {"made_of": made_of}


def require_unchanged(corpus: Corpus, digest: InputHash, expected: dict[str, Any]) -> None:
    """Raise a UserError if a corpus, read to its end, has changed since it was checked."""
    if digest.summary(corpus.skipped) != expected:
        raise UserError(f"{corpus.name} changed while it was being read.")


class _SplitFiles:
    """Writes the files of a split, document by document.

    Source ids are below ``ids``.
    """

    def __init__(self, folder: DataFolder, split: str, ids: int, labels: bool, opened: ExitStack) -> None:
        sizes: dict[Side, int] = {"source": ids, "target": ids, **({"labels": NUM_LABELS} if labels else {})}
        self._split = split
        self._writers = {
            side: opened.enter_context(IndexedWriter(folder.prefix(split, side), size)) for side, size in sizes.items()
        }
        self._references = opened.enter_context(folder.references_path(split).open("wb"))
        self._target_words, self._query_tokens, self._sentences, self._chosen = (array("q") for _ in range(4))
        self.whole = self.paired = 0

    def add(self, document: Document, encoded: EncodedDocument) -> None:
        """Append the pairs of one document."""
        self.whole += encoded.is_whole
        self.paired += bool(encoded.pairs)
        for pair in encoded.pairs:
            self._writers["source"].add(pair.source)
            self._writers["target"].add(pair.target)
            name, summary = pair.name or (document.id, document.target)
            self._references.write(json.dumps({"id": name, "summary": summary}).encode() + b"\n")
            self._target_words.append(pair.target_words)
            self._query_tokens.append(pair.query_tokens)
            if "labels" in self._writers:
                self._writers["labels"].add(pair.labels)
                self._sentences.append(int((pair.labels >= SENTENCE).sum()))
                self._chosen.append(int((pair.labels == CHOSEN).sum()))

    def sync(self) -> None:
        """Put the references on the disk; the other files are when they are closed."""
        if not self._target_words:
            raise UserError(
                f"The split {self._split!r} must hold at least one pair of text and summary, but all were left out."
            )
        sync(self._references)

    def about(self, queries: bool) -> dict[str, Any]:
        """Return the manifest's entry."""
        counts = {
            "source_tokens": self._writers["source"].lengths,
            "target_tokens": self._writers["target"].lengths,
            "target_words": self._target_words,
        }
        if queries:
            counts["query_tokens"] = self._query_tokens
        if "labels" in self._writers:
            counts |= {"sentences": self._sentences, "chosen_sentences": self._chosen}
        found = {name: distribution(np.array(values)) for name, values in counts.items()}
        return {"documents": len(self._target_words), **found}
