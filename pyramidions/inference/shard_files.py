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
from pyramidions.files.progress import listed
from pyramidions.inference.share import MOST, Share

WHOLE, PARTIAL = ".shard", ".partial"
_NAME = re.compile(r"[0-9]{5}-of-[0-9]{5}\.(?:shard|partial)")
_ID = '{"id": '  # how each line begins

# What a shard says of itself, and how an error calls it.
_FACTS = {
    "command": "the command",
    "of": "the number of shards",
    "version": "the version of pyramidions",
    "input": "the inputs",
}
# Settings that are no options.
_SETTINGS = {"model": "the model", "queries": "the queries"}
# Those that follow from options or from the model, which are told where nothing else differs.
_DERIVED = {
    "lowers_min": "whether --min-len was given",
    "lowers_max": "whether --max-len was given",
    "prefix": "the model's prefix of summaries",
    "stops": "what ends a selection",
    "mmr_weight": "the weight of mmr",
}
# A file or a model by its SHA-256 tells a reader nothing.
_FINGERPRINTS = {"input", "model", "method", "select", "section_types", "idf", "vectors", "queries"}


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
        if other is not None and (difference := _difference(other, about, "{0} there, {1} here")) is not None:
            raise UserError(f"--out must hold shards of this run only, but {path} differs from it in {difference}.")


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
        failed: those that could not read something; known once all lines are read.

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
            if (difference := _difference(reader.about, first.about, "{0} and {1}")) is not None:
                raise UserError(f"Shards must be of one run, but {path} and {first.path} differ in {difference}.")
            number = reader.about["shard"]
            if number in by_number:
                raise UserError(
                    f"Shards must be given once, but {by_number[number].path} and {path} are both {number}."
                )
            by_number[number] = reader
        of = 0 if first is None else first.about["of"]
        if missing := [f"{number}/{of}" for number in range(1, of + 1) if number not in by_number]:
            raise UserError(f"All {of:,} shards must be there, but {listed(missing, 3)} is missing.")
        self._readers = list(by_number.values())
        self.failed: list[Path] = []

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
        self.failed = [reader.path for reader in self._readers if reader.end["failed"] is True]


def _blocks_of(reader: BlockReader) -> Iterator[tuple[int, list[bytes]]]:
    share = Share(reader.about["shard"], reader.about["of"])
    for block in reader:
        if not share.holds(block.number):
            raise UserError(f"{reader.path} is damaged: block {block.number:,} is not one of shard {share}.")
        yield block.number, block.lines


def _with_id(line: bytes, ids: UniqueIds) -> bytes:
    try:
        text = line.decode()
        if not text.startswith(_ID):
            raise ValueError
        given, end = json.JSONDecoder().raw_decode(text, len(_ID))
        unique = ids.add(given, "")
        return line if unique == given else f"{_ID}{json.dumps(unique, ensure_ascii=False)}{text[end:]}".encode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise UserError("Shards must hold lines that begin with an id, but one does not.") from None


def _check_numbers(reader: BlockReader) -> None:
    number, of = reader.about.get("shard"), reader.about.get("of")
    if not (isinstance(number, int) and isinstance(of, int) and 1 <= number <= of <= MOST):
        raise UserError(f"{reader.path} is damaged: it must say which of how many shards it is.")
    if not isinstance(reader.about.get("settings") or {}, dict):
        raise UserError(f"{reader.path} is damaged: its settings must be an object.")


def _shards_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def _difference(one: Mapping[str, Any], other: Mapping[str, Any], values: str) -> str | None:
    """Return in what two shards differ, unless they are of one run.

    Args:
        one, other: what the shards say of themselves.
        values: says both values of it.
    """
    for key, name in _FACTS.items():
        if one.get(key) != other.get(key):
            return _named(key, name, one.get(key), other.get(key), values)
    settings, others = one.get("settings") or {}, other.get("settings") or {}
    differing = [name for name in {**settings, **others} if settings.get(name) != others.get(name)]
    # Where only one is sampled, the other has no temperature: that goes without saying.
    of_both = [name for name in differing if name in settings and name in others] or differing
    said = [name for name in of_both if name not in _DERIVED] or of_both
    names = {name: f"--{name.replace('_', '-')}" for name in said} | _SETTINGS | _DERIVED
    found = [_named(name, names[name], settings.get(name), others.get(name), values) for name in said]
    return " and ".join(found) or None


def _named(key: str, name: str, one: Any, other: Any, values: str) -> str:
    return name if key in _FINGERPRINTS else f"{name} ({values.format(_said(one), _said(other))})"


def _said(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "on", False: "off"}[value]
    return value if isinstance(value, str) else json.dumps(value)
