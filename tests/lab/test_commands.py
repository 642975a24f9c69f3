"""Every command and every program of the lab imports what is there and explains itself."""

import contextlib
import io
import runpy
from pathlib import Path

import pytest
from invoking import run_lab

from lab.cli import main

BENCHMARKS = Path(__file__).parents[2] / "lab" / "benchmarks"
PROGRAMS = sorted(path.name for path in BENCHMARKS.glob("*.py") if "def main()" in path.read_text())


@pytest.mark.parametrize("command", sorted(main.commands))
def test_a_command_explains_itself(command: str) -> None:
    result = run_lab(command, "--help")
    assert result.exit_code == 0 and result.stdout.split()[:5] == ["Usage:", "python", "-m", "lab", command]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_explains_itself(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.setattr("sys.argv", [program, "--help"])
    with pytest.raises(SystemExit) as ended, contextlib.redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(BENCHMARKS / program), run_name="__main__")
    assert ended.value.code == 0 and f"python lab/benchmarks/{program}" in printed.getvalue()
