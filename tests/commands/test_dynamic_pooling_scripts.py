"""scripts/reproduce/dynamic_pooling_*.sh run in the small size, from nothing to what they report."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from tables import for_each

SCRIPTS = Path(__file__).parents[2] / "scripts" / "reproduce"
NAMES = ("table1", "table2", "costs")


def script(name: str, *words: object) -> str:
    """Run a script in its small size; return what it printed."""
    done = subprocess.run(
        [SCRIPTS / f"dynamic_pooling_{name}.sh", "--scale", "tiny", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
def test_models_are_trained_once_and_scored_beside_the_published_ones(tmp_path: Path) -> None:
    printed = script("table1", "--rows", "gumbel,unigram", "--out", tmp_path)
    bits = r"^\| (\w+) \| (\d\.\d+) \| (\d\.\d+) \|$"
    rows = re.findall(bits, printed, re.MULTILINE)
    assert [(name, published) for name, _, published in rows] == [("gumbel", "1.136"), ("unigram", "1.134")]
    assert all(2 < float(ours) < 6 for _, ours, _ in rows)
    assert "Evaluated 2,000 tokens" in printed.replace("2000", "2,000") and "say nothing" in printed
    again = script("table2", "--rows", "gumbel", "--out", tmp_path)
    assert re.findall(bits, again, re.MULTILINE) == rows[:1] and "num_updates" not in again


@pytest.mark.nightly
def test_costs_are_compared_with_those_of_a_model_that_shortens_nothing(tmp_path: Path) -> None:
    printed = script("costs", "--out", tmp_path)
    names = [figure["name"] for figure in json.loads((tmp_path / "costs.json").read_text())["figures"]]
    assert "a step, vanilla / hourglass_fixed_4" in names and "Published: over 40% less time" in printed


@pytest.mark.parametrize("name", NAMES)
@for_each(
    ("words", "sentence"),
    [
        (["--scale", "huge"], "--scale must be tiny, small or paper, but is huge."),
        (["--out"], "--out needs a value."),
        (["fast"], "An argument must be an option, but is fast; --help lists them."),
    ],
)
def test_wrong_arguments_are_one_sentence(name: str, words: list[str], sentence: str) -> None:
    command = [SCRIPTS / f"dynamic_pooling_{name}.sh", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{sentence}\n")


@for_each(
    ("words", "sentence"),
    [
        (["--rows", "fixed_9"], "--rows must be files of configs/dynamic_pooling, but one is fixed_9."),
        (["--data", "nowhere.txt"], "--data must be a file, but nowhere.txt is none."),
        (
            ["--corpus", "cc100-fi"],
            "--corpus must be text8, wiki40b-en, cc100-en, wiki40b-fi, wiki40b-he or wiki40b-vi, but is cc100-fi.",
        ),
    ],
)
def test_wrong_rows_data_and_corpora_are_one_sentence(words: list[str], sentence: str) -> None:
    command = [SCRIPTS / "dynamic_pooling_table1.sh", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{sentence}\n")


@pytest.mark.parametrize("name", NAMES)
def test_their_help_is_their_head(name: str) -> None:
    command = [SCRIPTS / f"dynamic_pooling_{name}.sh", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(("Table", "Figure")) and "--scale" in done.stdout and "set -e" not in done.stdout
