"""What a run of `prepare` saves in its partial folder, so that the next one goes on where it was interrupted.

The files are hidden, and so no part of the folder that appears in the end. Each begins with a hash over the
rest of it: one that is damaged, or was saved with another vocabulary, counts as missing, and the user is told.
"""

import hashlib
import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyramidions.data.atomic import atomic_file
from pyramidions.data.folder import DataFolder
from pyramidions.data.growing import NOTHING, Extent
from pyramidions.data.progress import note
from pyramidions.data.tokenizer import Tokenizer

_HASH_BYTES = hashlib.sha256().digest_size


class Mark(NamedTuple):
    """How far a split is encoded, and which bytes of its files hold that.

    Args:
        sha256: over the documents that are encoded.
        source: good part of the documents' token file.
        target: good part of the summaries' token file.
        references: good part of the references file.
        source_lengths: tokens of every document, (documents,).
        target_lengths: tokens of every summary, (documents,).
        target_words: words of every summary, (documents,).
    """

    sha256: str
    source: Extent
    target: Extent
    references: Extent
    source_lengths: np.ndarray
    target_lengths: np.ndarray
    target_words: np.ndarray

    @property
    def documents(self) -> int:
        """How many documents are encoded."""
        return len(self.target_words)


_NONE = np.zeros(0, np.int64)
START = Mark(hashlib.sha256().hexdigest(), NOTHING, NOTHING, NOTHING, _NONE, _NONE, _NONE)


def save_vocabulary(folder: DataFolder, model: Tokenizer) -> None:
    """Keep a vocabulary for the next run."""
    _save(_vocabulary_path(folder), model.model_bytes)


def load_vocabulary(folder: DataFolder) -> Tokenizer | None:
    """The vocabulary that a run before this one trained, or None."""
    data = _load(_vocabulary_path(folder))
    return None if data is None else Tokenizer(data)


def save_mark(folder: DataFolder, split: str, model: Tokenizer, mark: Mark) -> None:
    """Keep a mark for the next run; the files of the split must be synced up to it."""
    data = io.BytesIO()
    np.savez(data, **mark._asdict())
    _save(_mark_path(folder, split), data.getvalue(), model.model_bytes)


def load_mark(folder: DataFolder, split: str, model: Tokenizer) -> Mark:
    """The last mark of a split, if it was encoded with this vocabulary and its files still hold what it says.

    Returns:
        The mark, or `START` where there is none that can be relied on.
    """
    data = _load(_mark_path(folder, split), model.model_bytes)
    if data is None:
        return START
    with np.load(io.BytesIO(data), allow_pickle=False) as saved:
        source, target, references = (Extent(*saved[name].tolist()) for name in ("source", "target", "references"))
        lengths = (saved["source_lengths"], saved["target_lengths"], saved["target_words"])
        mark = Mark(str(saved["sha256"]), source, target, references, *lengths)
    for path, extent in (
        (folder.tokens_path(split, "source"), mark.source),
        (folder.tokens_path(split, "target"), mark.target),
        (folder.references_path(split), mark.references),
    ):
        if not extent.begins(path):
            _tell_damaged(path)
            return START
    return mark


def _vocabulary_path(folder: DataFolder) -> Path:
    return folder.path / ".vocabulary"


def _mark_path(folder: DataFolder, split: str) -> Path:
    return folder.path / f".{split}.mark"


def _save(path: Path, data: bytes, salt: bytes = b"") -> None:
    with atomic_file(path) as file:
        file.write(hashlib.sha256(salt + data).digest() + data)


def _load(path: Path, salt: bytes = b"") -> bytes | None:
    if not path.is_file():
        return None
    saved = path.read_bytes()
    digest, data = saved[:_HASH_BYTES], saved[_HASH_BYTES:]
    if hashlib.sha256(salt + data).digest() != digest:
        _tell_damaged(path)
        return None
    return data


def _tell_damaged(path: Path) -> None:
    note(f"{path.name} of the interrupted run is damaged: that part is done anew")
