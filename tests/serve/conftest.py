"""Runs the page of `serve` in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from served_page import Page, served


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with served(tmp_path) as found:
        yield found
