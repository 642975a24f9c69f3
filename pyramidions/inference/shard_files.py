"""The files that shards of a run write, and how they are joined."""

import heapq
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyramidions.data.ids import UniqueIds
from pyramidions.errors import UserError
from pyramidions.files.block_file import BlockReader, read_about
from pyramidions.files.disk_set import DiskSet
from pyramidions.inference.share import MOST, Share

WHOLE, PARTIAL = ".shard", ".partial"
_NAME = re.compile(r"[0-9]{5}-of-[0-9]{5}\.(?:shard|partial)")
_ID = '{"id": '  # how each line begins

# What a shard says of itself, and how an error calls what differs.
_DIFFERENCES = {
    "command": "is a shard of `pyramidions {0}`, not of `pyramidions {1}`",
    "of": "is one of {0:,} shards, not of {1:,}",
    "version": "was written by pyramidions {0}, not {1}",
    "input": "is a shard of other inputs",
}
# Settings that are fingerprints.
_FINGERPRINTS = {
    "model": "model",
    "method": "method or trained extractor",
    "select": "selection of sentences",
    "section_types": "table of section types",
    "idf": "corpus of document frequencies",
    "vectors": "model of sentence vectors",
    "queries": "queries",
}


def shard_paths(folder: Path, share: Share) -> tuple[Path, Path]:
    """Return the file of a shard, and its name while it is written."""
    name = f"{share.shard:05}-of-{share.of:05}"
    return folder / f"{name}{WHOLE}", folder / f"{name}{PARTIAL}"


def check_folder(folder: Path, about: Mapping[str, Any]) -> None:
    """Refuse a folder that holds shards of something else.

    Raises:
        UserError: it does.
    """
    for path in _shards_in(folder):
        try:
            other = read_about(path)
        except FileNotFoundError:
            continue  # it was finished, and renamed, at this moment
        if other is not None and (difference := _difference(other, about)) is not None:
            raise UserError(f"--out must hold no shards of something else, but {path} {difference}.")


def find_shards(given: Sequence[Path]) -> list[Path]:
    """Return files, and in place of each folder the shards in it.

    Raises:
        UserError: something does not exist, a folder holds no shards, or a shard in it is not finished.
    """
    found: list[Path] = []
    for path in given:
        if not path.exists():
            raise UserError(f"The shard {path} does not exist.")
        inside = _shards_in(path) if path.is_dir() else [path]
        if not inside:
            raise UserError(f"{path} must hold shards that --shard wrote, but holds none.")
        found += inside
    for path in found:
        if path.suffix == PARTIAL:
            raise UserError(f"{path} is not finished: run its shard again, which goes on where it stopped.")
    return found


class JoinedShards:
    """All shards of a run, put back in the order of the inputs.

    Args:
        paths: of the shards, in any order.

    Attributes:
        failed: how many of them could not read something; known once all lines are read.

    Raises:
        UserError: one is no shard, is of another run, comes twice or is missing.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        by_number: dict[int, BlockReader] = {}
        first: BlockReader | None = None
        for path in paths:
            reader = BlockReader(path)
            first = first or reader
            _check_numbers(reader)
            if (difference := _difference(reader.about, first.about)) is not None:
                raise UserError(f"Shards must be of one run, but {path} {difference}, as {first.path} is.")
            number = reader.about["shard"]
            if number in by_number:
                raise UserError(
                    f"Shards must be given once, but {by_number[number].path} and {path} are both {number}."
                )
            by_number[number] = reader
        of = 0 if first is None else first.about["of"]
        if missing := [f"{number}/{of}" for number in range(1, of + 1) if number not in by_number]:
            more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
            raise UserError(f"All {of:,} shards must be there, but {', '.join(missing[:3])}{more} is missing.")
        self._readers = list(by_number.values())
        self.failed = 0

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of all shards in the order of the inputs, with ids as one run would have numbered them.

        A block of each shard is held at a time; the ids are on the disk.

        Raises:
            UserError: a shard is damaged.
        """
        ids = UniqueIds(number_repeated=True, seen=DiskSet())
        for _, lines in heapq.merge(*map(_blocks_of, self._readers), key=itemgetter(0)):
            for line in lines:
                yield _with_id(line, ids)
        ends = [reader.end for reader in self._readers]
        if len({end["inputs"] for end in ends}) > 1:
            raise UserError("Shards must be of one run, but these read different numbers of inputs.")
        self.failed = sum(end["failed"] is True for end in ends)


def _blocks_of(reader: BlockReader) -> Iterator[tuple[int, list[bytes]]]:
    share = Share(reader.about["shard"], reader.about["of"])
    for block in reader:
        if not share.holds(block.number):
            raise UserError(f"{reader.path} is damaged: block {block.number:,} is not one of shard {share}.")
        yield block.number, block.lines


def _with_id(line: bytes, ids: UniqueIds) -> bytes:
    text = line.decode()
    try:
        if not text.startswith(_ID):
            raise ValueError
        given, end = json.JSONDecoder().raw_decode(text, len(_ID))
        unique = ids.add(given, "")
    except (ValueError, TypeError, AttributeError):
        raise UserError("Shards must hold lines that begin with an id, but one does not.") from None
    return line if unique == given else f"{_ID}{json.dumps(unique, ensure_ascii=False)}{text[end:]}".encode()


def _check_numbers(reader: BlockReader) -> None:
    number, of = reader.about.get("shard"), reader.about.get("of")
    if not (isinstance(number, int) and isinstance(of, int) and 1 <= number <= of <= MOST):
        raise UserError(f"{reader.path} is damaged: it must say which of how many shards it is.")


def _shards_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """Return how one shard differs from others of its run; None if it does not."""
    for key, sentence in _DIFFERENCES.items():
        if one.get(key) != other.get(key):
            return sentence.format(one.get(key), other.get(key))
    settings, others = one.get("settings") or {}, other.get("settings") or {}
    for name in {**settings, **others}:
        if settings.get(name) != others.get(name):
            # A model or a file by its SHA-256 tells a reader nothing.
            if name in _FINGERPRINTS:
                return f"was written with another {_FINGERPRINTS[name]}"
            return f"was written with `{name}` {settings.get(name)!r}, not {others.get(name)!r}"
    return None
