"""Shards that no run wrote are refused in one sentence."""

from pathlib import Path
from typing import Any

import pytest

from pyramidions.data.ids import UniqueIds
from pyramidions.errors import UserError
from pyramidions.files.block_file import block_writer
from pyramidions.files.disk_set import DiskSet
from pyramidions.inference.shard_files import JoinedShards, _with_id


@pytest.mark.parametrize("settings", [[1], "x", 1])
def test_settings_that_are_no_object_are_refused(settings: Any, tmp_path: Path) -> None:
    path = tmp_path / "00001-of-00001.shard"
    with block_writer(tmp_path / "a.partial", path, {"shard": 1, "of": 1, "settings": settings}) as writer:
        writer.finish(0, False)
    with pytest.raises(UserError, match="is damaged: its settings must be an object."):
        JoinedShards([path])


@pytest.mark.parametrize("line", [b'{"id": "\xff"}', b'{"id": "\\ud800"}', b'{"id": ' + b"[" * 100_000, b"[]", b""])
def test_a_line_without_a_plain_id_is_refused(line: bytes) -> None:
    ids = UniqueIds(number_repeated=True, seen=DiskSet())
    with pytest.raises(UserError, match="must hold lines that begin with an id, but one does not."):
        for _ in range(2):
            _with_id(line, ids)
