"""Contract tests, those of whole encoders and decoders too, run where `--device` says."""

from collections.abc import Iterator

import pytest
import torch

ON_DEVICE = ("test_contract.py", "test_encoder.py", "test_decoder.py")


@pytest.fixture(autouse=True)
def _device(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.path.name not in ON_DEVICE:
        yield
        return
    with torch.device(request.config.getoption("--device")):
        yield
