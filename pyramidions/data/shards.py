"""What an interrupted run of `prepare` leaves to the next one: its vocabulary and the shards that it completed.

They are files of the partial folder whose names begin with a dot, so that they are not part of the finished folder.
Each is written whole or not at all, and begins with a hash of the rest. A damaged file and a shard that was encoded
with another vocabulary count as missing, and the user is told.
"""

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyramidions.data.folder import DataFolder
from pyramidions.files.atomic import atomic_file
from pyramidions.files.progress import note
from pyramidions.text.tokenizer import Tokenizer

_HASH_BYTES = hashlib.sha256().digest_size


class Shard(NamedTuple):
    """Consecutive documents of a split, encoded.

    Attributes:
        sha256: over all documents of the split up to the last one of this shard.
        source: ids of the documents, one document after the other.
        source_lengths: number of ids of each document, (documents,).
        target: ids of the summaries, likewise.
        target_lengths: number of ids of each summary, (documents,).
        target_words: number of words of each summary, (documents,).
        references: bytes of the references file, as uint8.
        labels: of the sentences of the documents, one document after the other; empty without labels.
        label_counts: number of labels of each document, (documents,); empty without labels.
        read: number of documents that were read for this shard, how many of them were taken as a whole although a
            `Pairing` was to divide them, and how many became pairs, (3,); empty if each pair is a document.
    """

    sha256: str
    source: np.ndarray
    source_lengths: np.ndarray
    target: np.ndarray
    target_lengths: np.ndarray
    target_words: np.ndarray
    references: np.ndarray
    labels: np.ndarray = np.empty(0, np.uint8)
    label_counts: np.ndarray = np.empty(0, np.int32)
    read: np.ndarray = np.empty(0, np.int64)


class Shards:
    """The completed shards of a split: those of an interrupted run to begin with.

    Iterating reads them one by one, in the order of their documents.

    Args:
        folder: the partial folder.
        split: `train`, `valid` or `test`.
        model: the vocabulary that the documents are encoded with.

    Attributes:
        documents: number of documents in all shards.
        pairs: number of pairs that they became.
        whole: number of documents that were taken as a whole although they were to be divided.
        paired: number of documents that became pairs; the others were left out.
        sha256: over these documents.
    """

    def __init__(self, folder: DataFolder, split: str, model: Tokenizer) -> None:
        self._folder = folder.path
        self._split = split
        self._salt = model.model_bytes
        self._count = 0
        self.documents = self.pairs = self.whole = self.paired = 0
        self.sha256 = hashlib.sha256().hexdigest()
        while (shard := self._load(self._count)) is not None:
            self._include(shard)

    def append(self, shard: Shard) -> None:
        """Save the shard that comes next."""
        data = io.BytesIO()
        np.savez(data, **shard._asdict())
        save_part(self._path(self._count), data.getvalue(), self._salt)
        self._include(shard)

    def __iter__(self) -> Iterator[Shard]:
        for number in range(self._count):
            shard = self._load(number)
            if shard is None:
                raise OSError(f"{self._path(number)} cannot be read back")
            yield shard

    def _include(self, shard: Shard) -> None:
        self._count += 1
        pairs = len(shard.target_words)
        documents, whole, paired = shard.read.tolist() or (pairs, 0, pairs)
        self.documents += documents
        self.whole += whole
        self.paired += paired
        self.pairs += pairs
        self.sha256 = shard.sha256

    def _load(self, number: int) -> Shard | None:
        data = load_part(self._path(number), self._salt)
        if data is None:
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as saved:
            return Shard(str(saved["sha256"]), *(saved[name] for name in Shard._fields[1:]))

    def _path(self, number: int) -> Path:
        return self._folder / f".{self._split}.{number}.shard"


def save_vocabulary(folder: DataFolder, model: Tokenizer) -> None:
    """Keep a vocabulary for the next run."""
    save_part(_vocabulary_path(folder), model.model_bytes)


def load_vocabulary(folder: DataFolder) -> Tokenizer | None:
    """Return the vocabulary that an interrupted run trained, or None."""
    data = load_part(_vocabulary_path(folder))
    return None if data is None else Tokenizer.from_bytes(data)


def _vocabulary_path(folder: DataFolder) -> Path:
    return folder.path / ".vocabulary"


def save_part(path: Path, data: bytes, salt: bytes = b"") -> None:
    """Write what the next run may take over, behind a hash of it and of what it was made with."""
    with atomic_file(path) as file:
        file.write(hashlib.sha256(salt + data).digest() + data)


def load_part(path: Path, salt: bytes = b"") -> bytes | None:
    """Return what `save_part` wrote; None if there is nothing, or if it is damaged or was made with something else."""
    if not path.is_file():
        return None
    saved = path.read_bytes()
    digest, data = saved[:_HASH_BYTES], saved[_HASH_BYTES:]
    if hashlib.sha256(salt + data).digest() != digest:
        note(f"{path.name} of the interrupted run is damaged: that part is done anew")
        return None
    return data
