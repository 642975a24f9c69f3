"""Writes fairseq's memory-mapped token files without fairseq.

The layout is that of `fairseq.data.indexed_dataset.MMapIndexedDataset`: `PREFIX.bin` holds all tokens one
after the other, `PREFIX.idx` a header, the length of each item and where it begins.
"""

import struct
from array import array
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from pyramidions.data.atomic import sync
from pyramidions.data.growing import NOTHING, Extent, GrowingFile
from pyramidions.errors import UserError

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_DTYPE_CODES: dict[type, int] = {np.uint16: 8, np.uint32: 9}


class IndexedWriter:
    """Appends token sequences to `prefix.bin` and, when closed without an error, writes `prefix.idx`.

    Memory: four bytes an item. Both files are synced to disk before the writer closes. A writer that was killed
    can be gone on from: what `lengths` and `extent` were at a `sync` is what the next one takes.

    Args:
        prefix: path without the endings.
        vocab_size: ids are below it; up to 65,499 they take two bytes each, above it four, as in fairseq.
        lengths: tokens of every item that is in `prefix.bin` already, (items,).
        extent: the part of `prefix.bin` that holds these items.
    """

    def __init__(self, prefix: str | Path, vocab_size: int, lengths: ArrayLike = (), extent: Extent = NOTHING) -> None:
        self._prefix = str(prefix)
        self._dtype: type = np.uint16 if vocab_size < 65500 else np.uint32
        self._lengths = array("i", np.asarray(lengths, np.int32).tobytes())
        self._tokens = GrowingFile(Path(f"{self._prefix}.bin"), extent)

    def add(self, ids: ArrayLike) -> None:
        """Append one item."""
        item: np.ndarray = np.asarray(ids, dtype=self._dtype)
        self._tokens.write(item.tobytes())
        self._lengths.append(item.size)

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of every item so far, (items,)."""
        return np.array(self._lengths, dtype=np.int32)

    @property
    def extent(self) -> Extent:
        """The part of `prefix.bin` that holds the items so far."""
        return self._tokens.extent

    def sync(self) -> None:
        """Bring the items so far to the disk itself."""
        self._tokens.sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tokens.__exit__(kind, error, trace)
        if error is not None:
            return
        lengths = self.lengths
        ends = np.cumsum(lengths, dtype=np.int64) * np.dtype(self._dtype).itemsize
        begins = np.concatenate([np.zeros(1, np.int64), ends])[: len(lengths)]
        with Path(f"{self._prefix}.idx").open("wb") as index:
            index.write(_MAGIC + struct.pack("<QBQ", _VERSION, _DTYPE_CODES[self._dtype], len(lengths)))
            index.write(lengths.tobytes())
            index.write(begins.tobytes())
            sync(index)


class IndexedReader:
    """Reads back what `IndexedWriter` wrote, one item at a time, without loading the file.

    Args:
        prefix: path without the endings.

    Raises:
        UserError: the index is not in this format, or the two files do not belong together.
    """

    def __init__(self, prefix: str | Path) -> None:
        index = Path(f"{prefix}.idx").read_bytes()
        header = struct.calcsize("<9sQBQ")
        if len(index) < header or not index.startswith(_MAGIC):
            raise UserError(f"{prefix}.idx must be an index in fairseq's mmap format.")
        _, version, code, items = struct.unpack("<9sQBQ", index[:header])
        if version != _VERSION:
            raise UserError(f"{prefix}.idx must have the version {_VERSION} of its format, but has {version}.")
        dtype = next((dtype for dtype, known in _DTYPE_CODES.items() if known == code), None)
        if dtype is None:
            codes = " or ".join(map(str, _DTYPE_CODES.values()))
            raise UserError(f"{prefix}.idx must have the type code {codes} for its tokens, but has {code}.")
        # Behind the header: a length of four bytes and a begin of eight for every item.
        if len(index) != header + 12 * items:
            raise UserError(f"{prefix}.idx is damaged: it is not as long as its {items} items make it.")
        self._lengths = np.frombuffer(index, np.int32, items, header)
        self._ends = np.cumsum(self._lengths, dtype=np.int64)
        begins = np.frombuffer(index, np.int64, items, header + 4 * items)
        expected = (self._ends - self._lengths) * np.dtype(dtype).itemsize
        if (self._lengths < 1).any() or not np.array_equal(begins, expected):
            raise UserError(f"{prefix}.idx is damaged: its texts do not follow each other.")
        tokens = int(self._ends[-1]) if items else 0
        if Path(f"{prefix}.bin").stat().st_size != tokens * np.dtype(dtype).itemsize:
            raise UserError(f"{prefix}.bin is damaged: it does not hold the {tokens} tokens that the index counts.")
        self._tokens = np.memmap(f"{prefix}.bin", dtype, mode="r")

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, i: int) -> list[int]:
        """The ids of item `i`."""
        return self._tokens[self._ends[i] - self._lengths[i] : self._ends[i]].tolist()
