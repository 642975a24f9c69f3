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

from pyramidions.base.errors import UserError
from pyramidions.files.atomic import sync

_MAGIC = b"MMIDIDX\x00\x00"
_VERSION = 1
_DTYPE_CODES: dict[type, int] = {np.uint16: 8, np.uint32: 9}


class IndexedWriter:
    """Appends token sequences to `prefix.bin` and, when closed without an error, writes `prefix.idx`.

    Memory: four bytes an item. Both files are synced to disk before the writer closes.
    """

    def __init__(self, prefix: str | Path, vocab_size: int) -> None:
        self._prefix = str(prefix)
        # As in fairseq.
        self._dtype: type = np.uint16 if vocab_size < 65500 else np.uint32
        self._lengths = array("i")
        self._tokens = Path(f"{self._prefix}.bin").open("wb")  # noqa: SIM115, closed in __exit__

    def add(self, ids: ArrayLike) -> None:
        self.extend(ids, [np.size(ids)])

    def extend(self, ids: ArrayLike, lengths: ArrayLike) -> None:
        """Append the ids of several items, one item after the other."""
        self._tokens.write(np.asarray(ids, self._dtype).tobytes())
        self._lengths.frombytes(np.asarray(lengths, np.int32).tobytes())

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of every item so far, (items,)."""
        return np.array(self._lengths, dtype=np.int32)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._tokens:
            if error is not None:
                return
            sync(self._tokens)
        lengths = self.lengths
        ends = np.cumsum(lengths, dtype=np.int64) * np.dtype(self._dtype).itemsize
        begins = np.concatenate([np.zeros(1, np.int64), ends])[: len(lengths)]
        with Path(f"{self._prefix}.idx").open("wb") as index:
            index.write(_MAGIC + struct.pack("<QBQ", _VERSION, _DTYPE_CODES[self._dtype], len(lengths)))
            index.write(lengths.tobytes())
            index.write(begins.tobytes())
            sync(index)


class IndexedReader:
    """Reads back what `IndexedWriter` wrote, one item at a time, without loading the file."""

    def __init__(self, prefix: str | Path) -> None:
        index = Path(f"{prefix}.idx").read_bytes()
        header = struct.calcsize("<9sQBQ")
        known = {code: dtype for dtype, code in _DTYPE_CODES.items()}
        begin = index[:header] if len(index) >= header else bytes(header)
        magic, version, code, items = struct.unpack("<9sQBQ", begin)
        # Behind the header: a length of four bytes and a begin of eight for every item.
        is_whole = (magic, version) == (_MAGIC, _VERSION) and code in known and len(index) == header + 12 * items
        if not is_whole:
            raise UserError(f"{prefix}.idx must be a whole index in fairseq's mmap format, but is not.")
        dtype = known[code]
        self._lengths = np.frombuffer(index, np.int32, items, header)
        self._ends = np.cumsum(self._lengths, dtype=np.int64)
        begins = np.frombuffer(index, np.int64, items, header + 4 * items)
        expected = (self._ends - self._lengths) * np.dtype(dtype).itemsize
        if (self._lengths < 1).any() or not np.array_equal(begins, expected):
            raise UserError(f"{prefix}.idx is damaged: its texts do not follow each other.")
        tokens = int(self._ends[-1]) if items else 0
        if Path(f"{prefix}.bin").stat().st_size != tokens * np.dtype(dtype).itemsize:
            raise UserError(f"{prefix}.bin is damaged: it does not hold the {tokens} tokens that the index counts.")
        # All ids, one item after the other, mapped into memory, (tokens,).
        self.tokens: np.ndarray = np.memmap(f"{prefix}.bin", dtype, mode="r")

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, i: int) -> list[int]:
        """The ids of item `i`."""
        return self.tokens[self._ends[i] - self._lengths[i] : self._ends[i]].tolist()
