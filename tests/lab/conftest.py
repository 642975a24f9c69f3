"""Runs the commands of the lab in this process."""

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from lab.cli import main


@pytest.fixture
def run() -> Callable[..., Result]:
    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments], prog_name="python -m lab")

    return invoke


@pytest.fixture
def fail(run: Callable[..., Result]) -> Callable[..., str]:
    """Runs a command that must fail, and returns its one sentence."""

    def invoke(*arguments: object) -> str:
        result = run(*arguments)
        assert result.exit_code == 1 and "Traceback" not in result.output, result.output
        return result.stderr.rstrip("\n").splitlines()[-1].removeprefix("Error: ")

    return invoke
