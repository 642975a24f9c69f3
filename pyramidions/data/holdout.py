"""Holds documents out for validation and testing where a corpus has no such splits.

A hash of its id decides where a document goes: neither the order of the documents nor a seed, so that the same corpus
is always divided alike.
"""

import json
from array import array
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyramidions.base.errors import UserError
from pyramidions.data.ids import id_hash
from pyramidions.data.readers import Corpus
from pyramidions.files.atomic import atomic_folder, sync
from pyramidions.files.progress import progress_bar

#: The smallest corpus that documents can be held out of.
FEWEST = 10
_SHARES = {"test": (0.1, 1000), "valid": (0.05, 500)}  # of the documents, and at most so many


class Survey(NamedTuple):
    """What one reading of a corpus tells."""

    # source_words, target_words: of each document and of its summary.
    source_words: np.ndarray
    target_words: np.ndarray
    small: float  # share of the summaries' words that are written in small letters
    capitalized: float  # share of them that have capitals and small letters
    hashes: np.ndarray  # of each document's id, in 64 bits
    skipped: int  # empty documents that are left out
    trimmed: int  # summaries that were cut

    @property
    def documents(self) -> int:
        return len(self.hashes)


def survey(corpus: Corpus) -> Survey:
    """Read a corpus once."""
    source, target, hashes = array("q"), array("q"), array("Q")
    small = capitalized = 0.0
    for document in corpus.shown("reading"):
        written = document.target.split()
        source.append(len(document.source.split()))
        target.append(len(written))
        hashes.append(id_hash(document.id))
        small += sum(map(str.islower, written))
        capitalized += sum(word != word.lower() and not word.isupper() for word in written)
    small, capitalized = (number / max(1, sum(target)) for number in (small, capitalized))
    words = np.array(source), np.array(target)
    return Survey(*words, small, capitalized, np.array(hashes), corpus.skipped, corpus.trimmed)


def held_out(hashes: np.ndarray, splits: Collection[str], name: str) -> dict[str, int]:
    """Return how many documents each split gets, `train` the rest."""
    if len(hashes) < FEWEST:
        raise UserError(
            f"{name} must have at least {FEWEST} documents, of which some are held out, but has {len(hashes)}."
        )
    sizes = {
        split: max(1, min(most, round(share * len(hashes))))
        for split, (share, most) in _SHARES.items()
        if split in splits
    }
    return {"train": len(hashes) - sum(sizes.values()), **sizes}


def write_splits(folder: Path, corpus: Corpus, hashes: np.ndarray, sizes: Mapping[str, int]) -> None:
    """Write the documents of a corpus as SPLIT.jsonl, one file for each split; the folder appears whole or not at all.

    Records keep the fields that are read: id, text and summary, under their names, and sections.
    """
    ends, read = _ends(hashes, sizes), []
    with atomic_folder(folder) as partial, ExitStack() as open_files:
        files = {split: open_files.enter_context((partial / f"{split}.jsonl").open("wb")) for split in sizes}
        with progress_bar("dividing", len(hashes), "documents", items=corpus.with_records()) as bar:
            for document, record in bar:
                place = id_hash(document.id)
                read.append(place)
                split = next((split for split, end in ends.items() if place <= end), "train")
                # Others may hold what is no JSON, or numbers that are refused when it is read.
                files[split].write(json.dumps(corpus.fields_read(document, record)).encode() + b"\n")
        if not np.array_equal(np.array(read, np.uint64), hashes):
            raise UserError(f"{corpus.name} changed while it was being read.")
        for file in files.values():
            sync(file)


def _ends(hashes: np.ndarray, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the last hash of each split but `train`, in their order."""
    ordered, before, ends = np.sort(hashes), 0, {}
    for split, size in sizes.items():
        if split != "train":
            before += size
            ends[split] = int(ordered[before - 1])
    return ends
