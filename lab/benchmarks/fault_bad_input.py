"""Counts the bad inputs of tests/bad_input that end in their one sentence and leave nothing."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from fault_materials import ROOT
from fault_runs import run

from pyramidions.files.atomic import write_file

BAD_INPUT = "bad-input"
_FOLDER = ROOT / "tests" / "bad_input"
_TEST = "test_bad_input_ends_in_one_sentence_and_leaves_nothing["


def counted_cases() -> int:
    """Return how many cases there are."""
    return len((_FOLDER / "cases.jsonl").read_text().splitlines())


def bad_input(folder: Path) -> dict[str, Any]:
    """Run the cases as the tests do; return how many there are, how many held, and the names of the others.

    Args:
        folder: where what came out is kept, and not found again.
    """
    kept = folder / "bad-input.json"
    if not kept.exists():
        print(f"running {counted_cases()} bad inputs", flush=True)
        with tempfile.TemporaryDirectory() as made:
            report = Path(made) / "report.xml"
            done = run(["python", "-m", "pytest", "-q", "-n", "0", f"--junitxml={report}", str(_FOLDER)])
            if not report.exists():
                sys.exit(f"The cases of bad input do not run:\n{done.output}")
            found = outcomes(report)
        if found["cases"] != counted_cases():
            sys.exit(f"{found['cases']} of {counted_cases()} bad inputs were run:\n{done.output}")
        write_file(kept, json.dumps(found).encode())
    return dict(json.loads(kept.read_text()))


def outcomes(report: Path) -> dict[str, Any]:
    """Return what a JUnit file of pytest says of the cases; one that was skipped did not hold."""
    cases = [each for each in ElementTree.parse(report).iter("testcase") if each.get("name", "").startswith(_TEST)]
    wrong = [each.get("name", "").removeprefix(_TEST)[:-1] for each in cases if len(each.findall("*"))]
    return {"cases": len(cases), "held": len(cases) - len(wrong), "wrong": wrong}
