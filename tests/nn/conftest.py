"""Contract tests run where `--device` says."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.name != "test_contract.py":
        yield
        return
    with torch.device(request.config.getoption("--device")):
        yield
