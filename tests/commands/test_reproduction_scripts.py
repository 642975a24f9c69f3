"""Scripts of scripts/reproduce that are programs of their own: they run in the small size, and report."""

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from pyramidions.data.folder import DataFolder

SCRIPTS = Path(__file__).parents[2] / "scripts" / "reproduce"
#: those that this module runs in full
NAMES = [
    *(f"dynamic_pooling_{name}" for name in ("table1", "table2", "costs")),
    *("longformer_lm", "sparse_decoding", "sparse_toy"),
]


def script(name: str, *words: object) -> str:
    """Run a script in its small size; return what it printed."""
    done = subprocess.run(
        [SCRIPTS / f"{name}.sh", "--scale", "tiny", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("rows", ["gumbel", pytest.param("gumbel,unigram", marks=pytest.mark.nightly)])
def test_models_are_trained_once_and_scored_beside_the_published_ones(rows: str, tmp_path: Path) -> None:
    printed = script("dynamic_pooling_table1", "--rows", rows, "--out", tmp_path)
    bits = r"^\| (\w+) \| (\d\.\d+) \| (\d\.\d+) \|$"
    found = re.findall(bits, printed, re.MULTILINE)
    expected = {"gumbel": "1.136", "unigram": "1.134"}
    assert [(name, published) for name, _, published in found] == [(name, expected[name]) for name in rows.split(",")]
    assert all(2 < float(ours) < 6 for _, ours, _ in found)
    assert "Evaluated 2,000 tokens" in printed.replace("2000", "2,000") and "say nothing" in printed
    again = script("dynamic_pooling_table2", "--rows", "gumbel", "--out", tmp_path)
    assert re.findall(bits, again, re.MULTILINE) == found[:1] and "num_updates" not in again


@pytest.mark.nightly
def test_costs_are_compared_with_those_of_a_model_that_shortens_nothing(tmp_path: Path) -> None:
    printed = script("dynamic_pooling_costs", "--out", tmp_path)
    with (tmp_path / "costs.csv").open(newline="") as file:
        names = {row["row"] for row in csv.DictReader(file)}
    assert "a step, vanilla / hourglass_fixed_4" in names and "Published: over 40% less time" in printed


@pytest.mark.nightly
def test_a_terraformer_is_pretrained_then_trained_on_summaries_and_scored(data: DataFolder, tmp_path: Path) -> None:
    shutil.copytree(data.path, tmp_path / "corpora" / "arxiv")
    out = tmp_path / "out"
    script("sparse_arxiv", "--rows", "terraformer_pyramidion", "--data", tmp_path / "corpora", "--out", out)
    log = (out / "arxiv" / "sparse" / "terraformer_pyramidion" / "train.log").read_text()
    start = out / "arxiv" / "sparse" / "terraformer_pyramidion_pretraining" / "checkpoints" / "checkpoint_best.pt"
    assert f"loading pretrained model from {start}" in log
    page = (out / "report.md").read_text()
    assert re.search(r"\| terraformer_pyramidion +\| tiny +\| terraformer, pooled +\| 2×960 > 128 > 3×32 → 32 ", page)
    # The log-perplexity of the pretraining, in its own section.
    assert re.search(r"\| terraformer_pyramidion +\| .* \| +\d+\.\d\d +\|\n", page)


@pytest.mark.nightly
def test_toy_problems_end_in_shares_of_longer_inputs(tmp_path: Path) -> None:
    printed = script("sparse_toy", "--out", tmp_path)
    shares = re.findall(r"^(\w+)-(toy_\w+): symbols_right [\d.]+, sequences_right [\d.]+$", printed, re.MULTILINE)
    assert shares == [
        (problem, arch) for problem in ("addition", "copy") for arch in ("toy_terraformer", "toy_vanilla")
    ]


@pytest.mark.nightly
def test_models_of_the_paper_are_counted_and_timed_beside_the_dense_one(tmp_path: Path) -> None:
    printed = script("sparse_decoding", "--out", tmp_path)
    assert "17b_both.yaml: documents of 16 tokens" in printed
    parts = "feed_forward,feed_forward_128,projections,multiplicative,conv,both,output_2,output,output_8,terraformer"
    assert {path.stem for path in tmp_path.glob("*.json")} == set(parts.split(","))
    for part in parts.split(","):
        names = [config["config"] for config in json.loads((tmp_path / f"{part}.json").read_text())["configs"]]
        assert names == ["sparse/800m_dense", f"sparse/800m_{part}"]


@pytest.mark.nightly
def test_each_phase_of_a_longformer_goes_on_from_the_one_before(tmp_path: Path) -> None:
    printed = script("longformer_lm", "--out", tmp_path)
    row = r"^\| longformer_lm on \S+/data/sample/train\.jsonl\.xz \| \d\.\d+ \| text8: 1\.10 \|$"
    assert re.search(row, printed, re.MULTILINE)
    for phase, characters in enumerate([32, 64, 128, 160, 160], 1):
        log = (tmp_path / f"phase_{phase}" / "train.log").read_text()
        assert f"'tokens_per_sample': {characters}," in log and f"relative_window(window={4 << (phase - 1)})" in log
        before = tmp_path / f"phase_{phase - 1}" / "checkpoint_last.pt"
        assert (f"loading pretrained model from {before}" in log) == (phase > 1)
    assert "num_updates" not in script("longformer_lm", "--out", tmp_path)


@pytest.mark.parametrize("name", NAMES)
def test_their_help_is_their_head_and_a_wrong_scale_is_one_sentence(name: str) -> None:
    def called(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([SCRIPTS / f"{name}.sh", *words], capture_output=True, text=True, check=False)

    shown = called("--help").stdout
    assert shown.startswith(("Table", "Figure", "Longformer")) and "set -e" not in shown
    assert re.search(r"--scale +(\S+ +)?paper \(default\)", shown)
    for words in (["--scale", "huge"], ["--out"], ["fast"]):
        done = called(*words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert words[-1] in done.stderr
