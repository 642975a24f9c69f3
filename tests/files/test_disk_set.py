"""A set on the disk holds what a set in memory does."""

from pyramidions.data.ids import UniqueIds
from pyramidions.files.disk_set import DiskSet


def test_repeated_ids_are_numbered_as_in_memory() -> None:
    names = ["a", "b", "a", "a#2", "a", "\ud800", "\ud800", "é", "b"] * 3
    in_memory, on_disk = UniqueIds(True), UniqueIds(True, seen=DiskSet())
    given = [on_disk.add(name, "") for name in names]
    assert given == [in_memory.add(name, "") for name in names]
    assert given[:4] == ["a", "b", "a#2", "a#2#2"] and len(on_disk) == len(in_memory) == len(set(given)) == 27
