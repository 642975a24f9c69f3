"""Encodes the documents of a split, shard by shard, and joins the shards to the files of a data folder."""

import json
from collections.abc import Iterator
from itertools import islice, tee
from typing import Any, NamedTuple

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedWriter, id_type
from pyramidions.data.labels import CHOSEN, NUM_LABELS, SENTENCE, LabelledSource, labelled
from pyramidions.data.manifest import InputHash, distribution
from pyramidions.data.pairing import Pairing, Pairs
from pyramidions.data.readers import Corpus, Document
from pyramidions.data.shards import Shard, Shards
from pyramidions.files.atomic import sync
from pyramidions.files.parallel import chunks, ordered_map
from pyramidions.files.progress import counted, note, progress_bar
from pyramidions.text.normalization import normalize
from pyramidions.text.tokenizer import EOS, Tokenizer
from pyramidions.text.word_tags import NUM_TAGS, word_tags

CHUNK = 16  # documents that a worker gets at a time
# A shard ends at either limit. It is held in memory, and is the most that an interruption costs.
_DOCUMENTS_PER_SHARD = 1024
_TOKENS_PER_SHARD = 2**24


class EncodedPair(NamedTuple):
    """A text and its summary as ids, which end in `</s>`; the labels of its sentences, if there are any.

    Where documents have queries, the text begins with one, which ends in `</s>`, too.

    Attributes:
        name: (id, summary) where they are not those of the document.
    """

    source: np.ndarray
    target: np.ndarray
    target_words: int
    labels: np.ndarray
    name: tuple[str, str] | None = None


class EncodedDocument(NamedTuple):
    """The pairs that a document became, and whether it was taken as a whole although it was to be divided."""

    pairs: list[EncodedPair]
    is_whole: bool = False


def encode(
    folder: DataFolder,
    split: str,
    corpus: Corpus,
    expected: dict[str, Any],
    model: Tokenizer,
    workers: int,
    labels: bool = False,
    pairing: Pairing | None = None,
    tags: str | None = None,
) -> dict[str, Any]:
    """Write the files of a split; the shards that an interrupted run completed are not encoded again.

    Args:
        folder: to write to.
        split: `train`, `valid` or `test`.
        corpus: its documents.
        expected: the manifest's entry for these documents, from when they were checked.
        model: what to encode with.
        workers: number of processes that encode.
        labels: label the sentences of the documents.
        pairing: makes pairs of each document; None to take documents as they are.
        tags: the spaCy pipeline that tags words; None for no tags.

    Returns:
        The manifest's entry for the split.

    Raises:
        UserError: the documents are no longer those that were checked, or not those of the completed shards; or no pair
            is left.
    """
    shards = Shards(folder, split, model)
    digest, documents = InputHash(), iter(corpus)
    if shards.documents:
        _pass_over(documents, digest, shards, corpus, split, expected)
    ids = model.vocab_size * (1 if tags is None else NUM_TAGS)
    dtype = id_type(ids)
    with progress_bar(f"encoding {split}", expected["documents"], "documents", shards.documents) as bar:
        # The documents stay here and meet their ids again, so that no worker sends them back.
        given, waiting = tee(chunks(documents, CHUNK))
        told = (model, labels, pairing, tags)
        batches = ordered_map(_encode_chunk, given, workers, initializer=_receive, initargs=told)
        begun = _BegunShard(dtype)
        for chunk, batch in zip(waiting, batches, strict=True):
            for document, encoded in zip(chunk, batch, strict=True):
                digest.add(document)
                begun.add(document, encoded)
                if begun.is_full:
                    shards.append(begun.completed(digest))
                    begun = _BegunShard(dtype)
            bar.update(len(batch))
        require_unchanged(corpus, digest, expected)
        if begun.pairs:
            shards.append(begun.completed(digest))
    about = _joined(folder, split, shards, ids) | _about_pairing(split, pairing, shards, expected)
    if corpus.has_queries:
        about["query_tokens"] = distribution(np.concatenate([_query_tokens(shard) for shard in shards]))
    return about | _joined_labels(folder, split, shards) if labels else about


def _about_pairing(
    split: str, pairing: Pairing | None, shards: Shards, expected: dict[str, Any]
) -> dict[str, dict[str, int]]:
    """Tell of documents that were taken as a whole or left out; return what the manifest says of them."""
    if pairing is None:
        return {}
    # Documents without a pair may follow the last shard.
    left_out = expected["documents"] - shards.paired
    for number, because, what in (
        (shards.whole, pairing.whole_because, "taken as a whole"),
        (left_out, pairing.left_out_because, "left out"),
    ):
        if number:
            has, are = ("has", "is") if number == 1 else ("have", "are")
            of = counted(expected["documents"], "document")
            note(f"{split}: {number:,} of {of} {has} {because}, and {are} {what}")
    return {"made_of": {"documents": expected["documents"], "whole": shards.whole, "left_out": left_out}}


def require_unchanged(corpus: Corpus, digest: InputHash, expected: dict[str, Any]) -> None:
    """Raise a UserError if a corpus, read to its end, has changed since it was checked."""
    if digest.summary(corpus.skipped) != expected:
        raise _changed(corpus)


def _changed(corpus: Corpus) -> UserError:
    return UserError(f"{corpus.name} changed while it was being read.")


def _pass_over(
    documents: Iterator[Document],
    digest: InputHash,
    shards: Shards,
    corpus: Corpus,
    split: str,
    expected: dict[str, Any],
) -> None:
    """Read past the documents of the completed shards, which must not have changed."""
    note(f"goes on after {shards.documents:,} of {expected['documents']:,} documents of {split}")
    with progress_bar(f"passing over {split}", shards.documents, "documents") as bar:
        for document in islice(documents, shards.documents):
            digest.add(document)
            bar.update()
    # The file may have changed and been restored while the interrupted run read it.
    if digest.sha256 != shards.sha256:
        raise _changed(corpus)


class _BegunShard:
    """Gathers the pairs of documents to a shard.

    Args:
        dtype: of the ids.
    """

    def __init__(self, dtype: type) -> None:
        self._dtype = dtype
        self._encoded: list[EncodedPair] = []
        self._references = bytearray()
        self._tokens = 0
        self._read = np.zeros(3, np.int64)

    @property
    def pairs(self) -> int:
        """Number of pairs so far."""
        return len(self._encoded)

    @property
    def is_full(self) -> bool:
        """Whether the shard is to be completed."""
        return self.pairs >= _DOCUMENTS_PER_SHARD or self._tokens >= _TOKENS_PER_SHARD

    def add(self, document: Document, encoded: EncodedDocument) -> None:
        """Append the pairs of one document."""
        self._read += (1, encoded.is_whole, bool(encoded.pairs))
        for pair in encoded.pairs:
            self._encoded.append(pair)
            name, summary = pair.name or (document.id, document.target)
            self._references += json.dumps({"id": name, "summary": summary}).encode() + b"\n"
            self._tokens += len(pair.source) + len(pair.target)

    def completed(self, digest: InputHash) -> Shard:
        """Return the shard; the digest is that of the split's documents so far."""
        sources, targets, target_words, labels, _ = zip(*self._encoded, strict=True)
        return Shard(
            digest.sha256,
            np.concatenate(sources).astype(self._dtype),
            np.array([len(ids) for ids in sources], np.int32),
            np.concatenate(targets).astype(self._dtype),
            np.array([len(ids) for ids in targets], np.int32),
            np.array(target_words),
            np.frombuffer(self._references, np.uint8),
            np.concatenate(labels),
            np.array([len(each) for each in labels], np.int32),
            self._read,
        )


def _joined(folder: DataFolder, split: str, shards: Shards, vocab_size: int) -> dict[str, Any]:
    """Write the files of a split from its shards; return the manifest's entry for it."""
    if not shards.pairs:
        raise UserError(f"The split {split!r} must hold at least one pair of text and summary, but all were left out.")
    target_words = []
    with (
        IndexedWriter(folder.prefix(split, "source"), vocab_size) as source,
        IndexedWriter(folder.prefix(split, "target"), vocab_size) as target,
        folder.references_path(split).open("wb") as references,
    ):
        for shard in shards:
            source.extend(shard.source, shard.source_lengths)
            target.extend(shard.target, shard.target_lengths)
            references.write(shard.references.tobytes())
            target_words.append(shard.target_words)
        sync(references)
    return {
        "documents": shards.pairs,
        "source_tokens": distribution(source.lengths),
        "target_tokens": distribution(target.lengths),
        "target_words": distribution(np.concatenate(target_words)),
    }


def _query_tokens(shard: Shard) -> np.ndarray:
    """Return the tokens of each document's query and of the `</s>` behind it."""
    # The first of two in each document.
    ends = np.flatnonzero(shard.source == EOS)[::2]
    return ends + 1 - (np.cumsum(shard.source_lengths) - shard.source_lengths)


def _joined_labels(folder: DataFolder, split: str, shards: Shards) -> dict[str, Any]:
    """Write the labels of a split from its shards; return what the manifest says of them."""
    sentences, chosen = [], []
    with IndexedWriter(folder.prefix(split, "labels"), NUM_LABELS) as writer:
        for shard in shards:
            writer.extend(shard.labels, shard.label_counts)
            begins = np.cumsum(shard.label_counts) - shard.label_counts
            sentences.append(np.add.reduceat(shard.labels >= SENTENCE, begins, dtype=np.int64))
            chosen.append(np.add.reduceat(shard.labels == CHOSEN, begins, dtype=np.int64))
    return {
        "sentences": distribution(np.concatenate(sentences)),
        "chosen_sentences": distribution(np.concatenate(chosen)),
    }


_received: list[tuple[Tokenizer, bool, Pairing | None, str | None]] = []


def _receive(model: Tokenizer, labels: bool = False, pairing: Pairing | None = None, tags: str | None = None) -> None:
    _received[:] = [(model, labels, pairing, tags)]


def _encode_chunk(documents: list[Document]) -> list[EncodedDocument]:
    ((model, labels, pairing, tags),) = _received
    if pairing is None:
        return [EncodedDocument([_encoded(document, model, labels, tags)]) for document in documents]
    return [_paired(pairing(document, model), document, model, labels, tags) for document in documents]


def _paired(pairs: Pairs, document: Document, model: Tokenizer, labels: bool, tags: str | None) -> EncodedDocument:
    names = [None if (d.id, d.target) == (document.id, document.target) else (d.id, d.target) for d in pairs.documents]
    encoded = [_encoded(each, model, labels, tags) for each in pairs.documents]
    named = [pair._replace(name=name) for pair, name in zip(encoded, names, strict=True)]
    return EncodedDocument(named, pairs.is_whole)


def _encoded(document: Document, model: Tokenizer, labels: bool, tags: str | None) -> EncodedPair:
    if labels:
        source = labelled(document, model)
    else:
        ids = model.encode(document.source) if tags is None else _tagged(document.source, model, tags)
        source = LabelledSource(ids, np.empty(0, np.uint8))
    query = [] if document.query is None else model.asked(document.query)
    return EncodedPair(
        np.array([*query, *source.ids, EOS], np.uint32),
        np.array([*model.encode(document.target), EOS], np.uint32),
        len(normalize(document.target).split()),
        source.labels,
    )


def _tagged(text: str, model: Tokenizer, tags: str) -> list[int]:
    """Return ids of a text, each plus the number of pieces times its tag."""
    surfaces = [surface for some in model.surfaces([text]) for surface in some]
    found: list[int] = (np.array(model.ids_of(surfaces)) + model.vocab_size * word_tags(surfaces, tags)).tolist()
    return found
