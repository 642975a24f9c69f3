"""A set on the disk holds what a set in memory does."""

import pytest

from pyramidions.data.ids import UniqueIds
from pyramidions.errors import UserError
from pyramidions.files.disk_set import DiskSet


def test_repeated_ids_are_numbered_as_in_memory() -> None:
    names = ["a", "b", "a", "a#2", "a", "\ud800", "\ud800", "é", "b"] * 3
    in_memory, on_disk = UniqueIds(True), UniqueIds(True, seen=DiskSet())
    given = [on_disk.add(name, "") for name in names]
    assert given == [in_memory.add(name, "") for name in names]
    assert given[:4] == ["a", "b", "a#2", "a#2#2"] and len(on_disk) == len(in_memory) == len(set(given)) == 27


def test_a_full_disk_is_one_sentence() -> None:
    texts = DiskSet()
    texts._database.execute("PRAGMA max_page_count = 4")
    with pytest.raises(UserError, match="cannot be written .database or disk is full.: set SQLITE_TMPDIR"):
        for number in range(10_000):
            texts.add(f"{number:0100}")
