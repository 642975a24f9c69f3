"""The test suite itself."""

import signal
import subprocess
from collections.abc import Iterator

import conftest
import pytest


@pytest.fixture
def in_background() -> Iterator[None]:
    """Ignore the signals that a shell ignores for what it starts in the background."""
    usual = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in usual.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_tests_start_can_be_interrupted_when_the_suite_runs_in_the_background(
    in_background: None, number: signal.Signals
) -> None:
    conftest.pytest_configure()
    with subprocess.Popen(["sleep", "60"]) as process:
        process.send_signal(number)
        assert process.wait() == -number
