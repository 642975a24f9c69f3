"""A stand-in of the hub, and a cache of its own, for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_stand_in import Hub, patched_hub


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with patched_hub(monkeypatch, tmp_path) as found:
        yield found
