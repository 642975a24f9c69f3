"""The report: our results beside the papers' figures, as tables and plots; the same numbers as CSV."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from result_files import CATALOGUE, DEEP, DELETED, POOLED, VANILLA, write

from lab.report import write_report

pytestmark = pytest.mark.nightly
CONFIGS = Path(__file__).parents[2] / "configs"
TRAINING_ONLY = {
    "times.decode_tokens": [],
    "times.reference": "figure4/vanilla_16_layers",
    "scores": None,
    "training": None,
}
SAMPLE = {"name": "sample", "documents": {"train": 200, "valid": 20, "test": 40}}
ARXIV = {"name": "arxiv", "documents": {"train": 203037, "valid": 6436, "test": 6440}}
PUBMED = {"name": "pubmed", "documents": {"train": 119924, "valid": 6633, "test": 6658}}


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "paper.csv").write_text(CATALOGUE)
    return tmp_path / "configs"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def table(page: Path, heading: str) -> pd.DataFrame:
    """Return the first table below a heading that begins so, by row where it has rows."""
    section = page.read_text().split(f"\n## {heading}", 1)[1]
    block = re.findall(r"^(?:\|.*\n)+", section, re.MULTILINE)[0]
    head, _, *lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in block.splitlines()]
    found = pd.DataFrame(lines, columns=head)
    return found.set_index("row") if "row" in head else found


@pytest.fixture
def section(out: Path, configs: Path) -> Callable[..., pd.DataFrame]:
    """Writes the report and gives a table of the page."""
    return lambda heading, of=configs: table(write_report(out, of).page, heading)


def test_a_row_stands_beside_the_papers(out: Path, section: Any) -> None:
    # Without its empty documents the corpus is the paper's.
    write(out, changes={"corpus": {"name": "arxiv", "documents": {"train": 202914, "valid": 6436, "test": 6440}}})
    # 4.46 / 1.26 and 13.27 / 5.51 are the paper's; 1 / 0.25 and 1 / 0.4 are ours.
    assert section("Table 2").loc["8"].to_dict() == {
        "scale": "paper",
        "architecture": "transpooler",
        "encoder → decoder": "8192 → 2048",
        "R-1 paper": "42.70 [42.40, 43.00]",
        "R-1 ours": "43.40 [43.10, 43.70]",
        "R-2 paper": "16.70 [16.50, 16.90]",
        "R-2 ours": "16.60 [16.40, 16.80]",
        "R-L ours": "38.00 [37.80, 38.20]",
        "train × paper": "3.54",
        "train × ours": "4.00 [3.20, 5.00]",
        "decode 256 × paper": "2.42",
        "decode 256 × ours": "2.00 [1.60, 2.50]",
        "decode 512 × paper": "2.41",
        "decode 512 × ours": "2.50 [2.00, 3.12]",
    }
    rows = pd.read_csv(out / "report.csv", dtype={"row": str}).set_index("row")
    assert list(rows.index) == ["3", "8", "11", "mean", "pyramidion-16"]
    names = ("paper_r1_low", "rouge1", "train_s", "paper_train_speed_up", "train_speed_up", "train_speed_up_high")
    assert [*rows.loc["8", [*names]]] == [42.4, 43.4, 0.3, 3.53968, 4, 5]
    assert [*rows.loc["8", ["config", "scale", "commit", "device"]]] == [POOLED, "paper", "8dd1a12", "NVIDIA H200"]
    assert rows.loc["11", "paper_train_speed_up"] == 2.63905 and rows.loc["11", [*names[1:3], "commit"]].isna().all()


def test_rows_are_counted_by_what_was_run_and_lack(out: Path, section: Any) -> None:
    write(out, changes={"generation": None, "scores": None})
    write(out, VANILLA, {"times.decode_256": DELETED, "times.decode_512": DELETED})
    write(out, "table2/11_lsh_8k", {"times.reference": POOLED})
    counts = section("What was run\n").values.tolist()
    assert counts == [["table2", "0", "3"], ["table4", "1", "0"], ["figure4", "1", "0"]]
    status = pd.read_csv(out / "report.csv", dtype={"row": str}).set_index("row").status
    assert status.to_dict() == {
        "3": "partly run: lacks times of decoding",
        "8": "partly run: lacks generation, scores",
        "11": f"partly run: lacks times over {VANILLA} (has: {POOLED})",
        "mean": "not run",
        "pyramidion-16": "not run",
    }


def test_what_cannot_be_compared_is_left_out(out: Path, section: Any) -> None:
    # The paper's ROUGE, beside ours of other or unknown data.
    for corpus in (SAMPLE, DELETED):
        write(out, changes={"corpus": corpus})
        found = section("Table 2").loc["8"]
        assert "R-1 paper" not in found
        assert (found["R-1 ours"], found["train × paper"]) == ("43.40 [43.10, 43.70]", "3.54")
    # A speed-up over another reference.
    write(out, VANILLA, {"times.reference": "table3/blockwise"})
    assert section("Table 2").loc["3", "train × ours"] == ""
    names = ("train s ours", "decode 512 s paper", "decode 512 s ours", "decode 512 × ours")
    assert [*section("Table 10").loc["3", [*names]]] == ["0.300 ± 0.010", "13.270", "0.300 ± 0.010", ""]
    # All figures of the paper, beside models of another size: a sixteenth of the paper's lengths.
    write(out, "table2/11_lsh_8k", {"scale": "tiny"})
    found = section("Table 2").loc["11"]
    assert (found["scale"], found["encoder → decoder"], found["R-1 paper"]) == ("tiny", "512 → 512", "")


def test_each_setting_figure_and_other_metric_has_a_table(out: Path, section: Any) -> None:
    bleurt = {"mean": -0.5125, "low": -0.625, "high": -0.375}
    write(out, changes={"scores.meteor": {"mean": 20.5, "low": 20.25, "high": 20.75}, "scores.bleurt": bleurt})
    write(out, "table4/mean")
    write(out, DEEP, TRAINING_ONLY)
    write(out, VANILLA, {"scale": "tiny", "hardware.device": "*a* <b> [c](d)", "hardware.gpus": 0, "data_hash": "ffff"})
    found = section("What was run on what")
    assert [*found["results"]] == ["1", "2", "1"] and [*found["hash"]] == ["ffff", "3f5c", "3f5c"]
    assert r"\*a\* &lt;b> \[c\](d), 8 threads, 0 GPUs" in found.hardware[0]
    metrics = section("Other metrics").loc["8", ["METEOR", "BLEURT"]]
    assert [*metrics] == ["20.50 [20.25, 20.75]", "−0.512 [−0.625, −0.375]"]
    deep = section("Figure 4").loc["pyramidion-16", ["encoder → decoder", "train × paper", "train × ours"]]
    assert [*deep] == ["2×8192 > 2048 > 2×512 → 512", "3.80", "4.00 [3.20, 5.00]"]
    assert (out / "report-figure4.png").read_bytes().startswith(b"\x89PNG")
    assert "](report-figure4.png)" in (out / "report.md").read_text()


def test_published_systems_stand_beside_comparable_results_of_ours_alone(out: Path, section: Any) -> None:
    write(out, "lecture/lsh_window", {"times": None, "corpus": SAMPLE}, "pubmed")
    found = section("PubMed", CONFIGS)
    assert list(found.index) == ["lsh_window"] and not [name for name in found if name.endswith("paper")]
    write(out, "lecture/lsh_window", {"times": None, "corpus": PUBMED}, "pubmed")
    found = section("PubMed", CONFIGS)
    starts = ["starts from, paper", "starts from, ours", "R-1 paper", "R-1 ours"]
    assert [*found.loc["lsh_window", starts]] == ["BART-large", "nothing", "47.54", "43.40 [43.10, 43.70]"]
    assert [*found.loc["pegasus", starts]] == ["PEGASUS-large", "", "45.97", ""]
    status = pd.read_csv(out / "report.csv").set_index(["table", "row"]).status
    assert status["lecture_pubmed", "pegasus"] == "published only"


def test_bits_of_fairseq_are_shown_in_nats(out: Path, section: Any) -> None:
    training = {"seconds": 1.0, "updates": 524288, "epochs": 700, "best": {"metric": "loss", "value": 2.5}}
    changes = {"times": None, "scores": None, "generation": None, "corpus": ARXIV, "training": training}
    write(out, "sparse/scaling_pretraining", changes, "arxiv")
    found = section("Sparse parts in pretraining", CONFIGS)
    # 2.5 bits are 1.73 nats.
    assert [*found.loc["scaling", ["updates ours", "log-perplexity ours"]]] == ["524,288", "1.73"]
    assert [*found.loc["dense", ["updates paper", "log-perplexity paper"]]] == ["500,000", "1.57"]
