"""Bad inputs of all commands, as data: each ends in the sentence that stands in cases.jsonl, and leaves nothing.

A line of cases.jsonl is a case: the command, the inputs that it needs by the names that the command uses (a maker of
makers.py and its arguments), the exit status if it is not 1, and the sentence. "…" stands for any text, of another
program in most cases. Beside the inputs lie whole ones: `whole.pt`, `export`, `data`, `papers`, `paper.txt`
and `summaries.txt`.
"""

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from bad_input.makers import MAKERS
from click.testing import CliRunner, Result

from lab.cli import main as lab
from pyramidions.cli import commands, main

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text().splitlines()]


def found_in(folder: Path) -> dict[str, bytes | None]:
    """Return all that lies in a folder and its folders: files with their content, and all else."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
    }


def prepare_case(case: dict[str, Any], folder: Path, whole: Path) -> None:
    """Lay out the whole and bad inputs that the command names."""
    for name in {word.split("/")[0] for word in shlex.split(case["command"])} - {""}:
        if name in case.get("input", {}):
            maker, *arguments = case["input"][name]
            MAKERS[maker](folder / name, whole, *arguments)
        elif name == "configs":
            (folder / name).symlink_to(Path(__file__).parents[2] / name)
        elif (whole / name).is_dir():
            shutil.copytree(whole / name, folder / name)
        elif (whole / name).is_file():
            shutil.copy(whole / name, folder)


def run_case(case: dict[str, Any]) -> Result:
    """Run the command in this process: one of `pyramidions`, or of `lab`."""
    words = shlex.split(case["command"])
    group, words = (lab, words[1:]) if words[0] == "lab" else (main, words)
    return CliRunner().invoke(group, words, prog_name="pyramidions")


@pytest.mark.parametrize("case", CASES, ids=[case["command"].split()[0] for case in CASES])
def test_bad_input_ends_in_one_sentence_and_leaves_nothing(
    case: dict[str, Any], whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # What Python keeps beside a module is none of ours.
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    prepare_case(case, tmp_path, whole)
    before = found_in(tmp_path)
    done = run_case(case)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exc_info
    assert "Traceback" not in done.output
    expected = re.escape(case["sentence"]).replace("…", ".*")
    assert re.fullmatch(f"Error: {expected}", done.stderr.rstrip("\n").splitlines()[-1]), done.stderr
    assert done.exit_code == case.get("exit", 1)
    assert found_in(tmp_path) == before


def test_the_whole_inputs_are_still_whole(whole: Path) -> None:
    assert sorted(os.listdir(whole)) == sorted(  # noqa: PTH208, hidden ones as well
        ["data", "export", "paper.txt", "papers", "summaries.txt", "whole.pt"]
    )
    assert not [path for path in whole.rglob("*") if path.name.startswith(".")]


def test_there_are_cases_of_every_command() -> None:
    assert len(CASES) >= 150
    assert {case["command"].split()[0] for case in CASES} >= set(commands._COMMANDS)
