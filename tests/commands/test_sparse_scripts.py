"""scripts/reproduce/sparse_*.sh run in the small size, from nothing to what they report."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tables import for_each

from pyramidions.data.folder import DataFolder

SCRIPTS = Path(__file__).parents[2] / "scripts" / "reproduce"


def script(name: str, *words: object) -> str:
    """Run a script in its small size; return what it printed."""
    done = subprocess.run(
        [SCRIPTS / f"sparse_{name}.sh", "--scale", "tiny", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
def test_a_terraformer_is_pretrained_then_trained_on_summaries_and_scored(data: DataFolder, tmp_path: Path) -> None:
    shutil.copytree(data.path, tmp_path / "corpora" / "arxiv")
    out = tmp_path / "out"
    script("arxiv", "--rows", "terraformer_pyramidion", "--data", tmp_path / "corpora", "--out", out)
    log = (out / "arxiv" / "sparse" / "terraformer_pyramidion" / "train.log").read_text()
    start = out / "arxiv" / "sparse" / "terraformer_pyramidion_pretraining" / "checkpoints" / "checkpoint_best.pt"
    assert f"loading pretrained model from {start}" in log
    page = (out / "report.md").read_text()
    assert re.search(r"\| terraformer_pyramidion +\| tiny +\| terraformer, pooled +\| 2×960 > 128 > 3×32 → 32 ", page)
    # The log-perplexity of the pretraining, in its own section.
    assert re.search(r"\| terraformer_pyramidion +\| .* \| +\d+\.\d\d +\|\n", page)
    assert "terraformer_800m" not in page and "terraformer_175k" not in page


@pytest.mark.nightly
def test_toy_problems_end_in_shares_of_longer_inputs(tmp_path: Path) -> None:
    printed = script("toy", "--out", tmp_path)
    shares = re.findall(r"^(\w+)-(toy_\w+): symbols_right [\d.]+, sequences_right [\d.]+$", printed, re.MULTILINE)
    assert shares == [
        (problem, arch) for problem in ("addition", "copy") for arch in ("toy_terraformer", "toy_vanilla")
    ]


@pytest.mark.nightly
def test_models_of_the_paper_are_counted_and_timed_beside_the_dense_one(tmp_path: Path) -> None:
    printed = script("decoding", "--out", tmp_path)
    assert "17b_both.yaml: documents of 16 tokens" in printed
    parts = {"feed_forward", "projections", "both", "output"}
    assert {path.stem for path in tmp_path.glob("*.json")} == parts
    for part in parts:
        names = [config["config"] for config in json.loads((tmp_path / f"{part}.json").read_text())["configs"]]
        assert names == ["sparse/800m_dense", f"sparse/800m_{part}"]


@for_each("name", ["decoding", "toy"])
@for_each(
    ("words", "sentence"),
    [
        (["--scale", "huge"], "--scale must be tiny or paper, but is huge."),
        (["--out"], "--out needs a value."),
        (["fast"], "An argument must be an option, but is fast; --help lists them."),
    ],
)
def test_wrong_arguments_are_one_sentence(name: str, words: list[str], sentence: str) -> None:
    done = subprocess.run([SCRIPTS / f"sparse_{name}.sh", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{sentence}\n")


@pytest.mark.parametrize("name", ["decoding", "toy"])
def test_their_help_is_their_head(name: str) -> None:
    done = subprocess.run([SCRIPTS / f"sparse_{name}.sh", "--help"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Table") and "--scale  paper (default)" in done.stdout and "set -e" not in done.stdout
