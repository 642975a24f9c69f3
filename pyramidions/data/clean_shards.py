"""What an interrupted run of `prepare --characters` leaves to the next one: the shards of clean text it completed."""

import hashlib
import io
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pyramidions.data.shards import load_part, save_part


class CleanShard(NamedTuple):
    """Consecutive parts of a stream, cleaned.

    Attributes:
        sha256: over all parts of the stream up to the last one of this shard.
        parts: how many these are.
        read: their characters before cleaning.
        is_last: nothing follows in the stream.
        ids: of this shard's characters, (characters,).
    """

    sha256: str
    parts: int
    read: int
    is_last: bool
    ids: np.ndarray


class CleanShards:
    """The completed shards of a stream: those of an interrupted run to begin with.

    Args:
        folder: the partial folder.
        name: of the stream.

    Attributes:
        last: the latest shard without its ids; of no parts to begin with.
        lengths: number of characters of each shard.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._start()
        while (shard := self._load(len(self.lengths))) is not None:
            self._include(shard)

    @property
    def characters(self) -> int:
        """Number of characters of all shards."""
        return sum(self.lengths)

    def about(self) -> dict[str, Any]:
        """Return the manifest's entry for the stream."""
        sha256, parts, read, is_last, _ = self.last
        return {"parts": parts, "sha256": sha256, "is_last": is_last, "read": read, "characters": self.characters}

    def append(self, shard: CleanShard) -> None:
        """Save the shard that comes next."""
        data = io.BytesIO()
        np.savez(data, **shard._asdict())
        save_part(self._path(len(self.lengths)), data.getvalue())
        self._include(shard)

    def discard(self) -> None:
        """Remove all shards."""
        for number in range(len(self.lengths)):
            self._path(number).unlink()
        self._start()

    def slices(self, begin: int, end: int) -> Iterator[np.ndarray]:
        """Yield the ids of the characters from `begin` to before `end`, shard by shard."""
        start = 0
        for number, length in enumerate(self.lengths):
            if start < end and start + length > begin:
                shard = self._load(number)
                if shard is None:
                    raise OSError(f"{self._path(number)} cannot be read back")
                yield shard.ids[max(begin - start, 0) : end - start]
            start += length

    def ends_in(self, characters: Set[int]) -> bool:
        """Return whether the last character so far is one of these ids."""
        return any(ids[-1] in characters for ids in self.slices(self.characters - 1, self.characters))

    def _start(self) -> None:
        self.last = CleanShard(hashlib.sha256().hexdigest(), 0, 0, False, np.empty(0, np.uint8))
        self.lengths: list[int] = []

    def _include(self, shard: CleanShard) -> None:
        self.lengths.append(len(shard.ids))
        self.last = shard._replace(ids=shard.ids[:0])

    def _load(self, number: int) -> CleanShard | None:
        data = load_part(self._path(number))
        if data is None:
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as saved:
            return CleanShard(
                str(saved["sha256"]), int(saved["parts"]), int(saved["read"]), bool(saved["is_last"]), saved["ids"]
            )

    def _path(self, number: int) -> Path:
        return self._folder / f".{self._name}.{number}.shard"
