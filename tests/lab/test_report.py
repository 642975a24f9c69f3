"""The report: our results beside the papers' figures, as tables and plots; the same numbers as CSV."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from result_files import CATALOGUE, DEEP, DELETED, POOLED, VANILLA, changed, write, write_topk

from lab import report as report_module
from lab.report import write_report
from pyramidions.base.errors import UserError

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
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "paper.csv").write_text(CATALOGUE)
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


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
    write(out)
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


def test_rows_are_counted_by_what_was_run_and_lack(out: Path, section: Any) -> None:
    write(out, changes={"generation": None, "scores": None})
    write(out, VANILLA, {"times.decode_256": DELETED, "times.decode_512": DELETED})
    write(out, "table2/11_lsh_8k", {"times.reference": POOLED})
    assert section("What was run\n").values.tolist() == [
        *(["table2", "0", "3"], ["table4", "1", "0"], ["figure4", "1", "0"])
    ]
    status = pd.read_csv(out / "report.csv", dtype={"row": str}).set_index("row").status
    assert status.to_dict() == {
        "3": "partly run: lacks times of decoding",
        "8": "partly run: lacks generation, scores",
        "11": f"partly run: lacks times over {VANILLA} (has: {POOLED})",
        "mean": "not run",
        "pyramidion-16": "not run",
    }


@pytest.mark.parametrize("corpus", [SAMPLE, DELETED])
def test_the_papers_rouge_is_left_out_beside_ours_of_other_or_unknown_data(
    out: Path, section: Any, corpus: object
) -> None:
    write(out, changes={"corpus": corpus})
    found = section("Table 2").loc["8"]
    assert "R-1 paper" not in found and (found["R-1 ours"], found["train × paper"]) == ("43.40 [43.10, 43.70]", "3.54")


def test_all_figures_of_the_paper_are_left_out_beside_models_of_another_size(out: Path, section: Any) -> None:
    write(out, changes={"scale": "tiny"})
    found = section("Table 2").loc["8"]
    # A sixteenth of the paper's lengths.
    assert (found["scale"], found["encoder → decoder"]) == ("tiny", "512 → 128")
    assert not [name for name in found.index if name.endswith("paper")]
    write(out, VANILLA)
    both = section("Table 2")
    assert both["R-1 paper"].to_dict() == {"3": "41.80 [41.60, 42.10]", "8": ""}


def test_a_corpus_without_its_empty_documents_is_the_papers(out: Path, section: Any) -> None:
    write(out, changes={"corpus": {"name": "arxiv", "documents": {"train": 202914, "valid": 6436, "test": 6440}}})
    assert section("Table 2").loc["8", "R-1 paper"] == "42.70 [42.40, 43.00]"


def test_a_speed_up_over_another_reference_is_not_shown(out: Path, section: Any) -> None:
    write(out, changes={"times.reference": "table3/blockwise"})
    assert "train × ours" not in section("Table 2")
    assert section("Table 10").loc["8", "train s ours"] == "0.300 ± 0.010"


def test_table_10_has_seconds_and_ratios(out: Path, section: Any) -> None:
    short, long = (changed({})["times"][name] for name in ("decode_256", "decode_512"))
    write(out, "table2/11_lsh_8k")
    write(out, changes={"times.decode_tokens": [16, 32], "times.decode_16": short, "times.decode_32": long})
    found = section("Table 10")
    names = ("decode 256 s paper", "decode 256 s ours", "decode 256 × paper", "decode 256 × ours")
    assert [*found.loc["8", [*names]]] == ["2.710", "0.300 ± 0.010", "2.42", "2.00 [1.60, 2.50]"]
    assert [*found.loc["11", [*names]]] == ["", "0.300 ± 0.010", "", "2.00 [1.60, 2.50]"]


def test_figure_4_has_speed_ups_over_as_many_layers_and_a_plot(out: Path, section: Any) -> None:
    write(out, DEEP, TRAINING_ONLY)
    found = section("Figure 4").loc["pyramidion-16"]
    assert found["encoder → decoder"] == "2×8192 > 2048 > 2×512 → 512"
    assert (found["train × paper"], found["train × ours"]) == ("3.80", "4.00 [3.20, 5.00]")
    assert (out / "report-figure4.png").read_bytes().startswith(b"\x89PNG")
    assert "](report-figure4.png)" in (out / "report.md").read_text()


def test_each_setting_that_results_had_has_a_line(out: Path, section: Any) -> None:
    write(out)
    write(out, DEEP)
    other = {"scale": "tiny", "hardware.device": "*a* <b> [c](d) $e_f", "hardware.gpus": 0, "data_hash": "ffff"}
    write(out, VANILLA, other)
    found = section("What was run on what")
    assert [*found["results"]] == ["1", "2"] and [*found["hash"]] == ["ffff", "3f5c"]
    assert r"\*a\* &lt;b> \[c\](d) \$e_f, 8 threads, 0 GPUs" in found.hardware[0]


def test_nothing_run_is_a_page_of_counts(out: Path, configs: Path) -> None:
    report = write_report(out, configs)
    assert report.page.read_text().count("\n## ") == 1 and report.summary == "Rows: 5 not run."
    assert not list(out.glob("*.png"))


def test_figures_5_and_6_come_from_the_benchmark_and_leave_with_it(out: Path, section: Any, configs: Path) -> None:
    write_topk(out)
    assert section("Figures 5 and 6").values.tolist() == [["x86_64, 2 threads", "38ff4f9", "sorting pays"]]
    assert (out / "report-topk.png").read_bytes() == (out / "topk" / "topk.png").read_bytes()
    for path in (out / "topk").iterdir():
        path.unlink()
    write_report(out, configs)
    assert not list(out.glob("*.png"))


def test_the_csv_file_has_one_line_a_row(out: Path, configs: Path) -> None:
    write(out)
    rows = pd.read_csv(write_report(out, configs).files[1], dtype={"row": str}).set_index("row")
    assert list(rows.index) == ["3", "8", "11", "mean", "pyramidion-16"]
    names = ("paper_r1_low", "rouge1", "train_s", "paper_train_speed_up", "train_speed_up", "train_speed_up_high")
    assert [*rows.loc["8", [*names]]] == [42.4, 43.4, 0.3, 3.53968, 4, 5]
    assert [*rows.loc["8", ["config", "scale", "commit", "device"]]] == [POOLED, "paper", "8dd1a12", "NVIDIA H200"]
    assert rows.loc["11", "paper_train_speed_up"] == 2.63905 and rows.loc["11", [*names[1:3], "commit"]].isna().all()


def test_figures_beside_rouge_have_a_table_and_columns_of_their_own(out: Path, section: Any) -> None:
    bleurt = {"mean": -0.5125, "low": -0.625, "high": -0.375}
    write(out, changes={"scores.meteor": {"mean": 20.5, "low": 20.25, "high": 20.75}, "scores.bleurt": bleurt})
    assert section("Other metrics").loc["8", "METEOR"] == "20.50 [20.25, 20.75]"
    assert section("Other metrics").loc["8", "BLEURT"] == "−0.512 [−0.625, −0.375]"
    assert pd.read_csv(out / "report.csv").meteor_low.dropna().tolist() == [20.25]


def test_published_systems_stand_beside_ours_with_what_each_starts_from(out: Path, section: Any) -> None:
    write(out, "lecture/lsh_window", {"times": None, "corpus": PUBMED}, "pubmed")
    found = section("PubMed", CONFIGS)
    starts = ["starts from, paper", "starts from, ours", "R-1 paper", "R-1 ours"]
    assert [*found.loc["lsh_window", starts]] == ["BART-large", "nothing", "47.54", "43.40 [43.10, 43.70]"]
    assert [*found.loc["pegasus", starts]] == ["PEGASUS-large", "", "45.97", ""]
    status = pd.read_csv(out / "report.csv").set_index(["table", "row"]).status
    assert status["lecture_pubmed", "pegasus"] == "published only"


@pytest.mark.parametrize("change", [{"scale": "tiny"}, {"corpus": SAMPLE}])
def test_without_comparable_results_nothing_published_is_there(change: dict[str, Any], out: Path, section: Any) -> None:
    write(out, "lecture/lsh_window", {"times": None, "corpus": PUBMED, **change}, "pubmed")
    found = section("PubMed", CONFIGS)
    assert list(found.index) == ["lsh_window"] and found["starts from, ours"].tolist() == ["nothing"]
    assert not [name for name in found if name.endswith("paper")]


def test_bits_of_fairseq_are_shown_in_nats(out: Path, section: Any) -> None:
    training = {"seconds": 1.0, "updates": 524288, "epochs": 700, "best": {"metric": "loss", "value": 2.5}}
    changes = {"times": None, "scores": None, "generation": None, "corpus": ARXIV, "training": training}
    write(out, "sparse/scaling_pretraining", changes, "arxiv")
    found = section("Sparse parts in pretraining", CONFIGS)
    # 2.5 bits are 1.73 nats.
    assert [*found.loc["scaling", ["updates ours", "log-perplexity ours"]]] == ["524,288", "1.73"]
    assert [*found.loc["dense", ["updates paper", "log-perplexity paper"]]] == ["500,000", "1.57"]


def test_a_row_of_several_tables_stands_in_each(out: Path, section: Any) -> None:
    write(out)
    assert "25" in section("Table 7", CONFIGS).index and "8" in table(out / "report.md", "Table 2").index


def test_bad_input_is_one_sentence(fail: Any, out: Path, configs: Path, tmp_path: Path) -> None:
    assert fail("report", tmp_path / "no") == f"OUT must be a folder of results, but is {tmp_path / 'no'}."
    assert fail("report", out, "--configs", out).startswith("--configs must be the folder that holds paper.csv")
    sentence = f"--to must be a .md file in a folder that exists, but is {tmp_path / 'x.csv'}."
    assert fail("report", out, "--to", tmp_path / "x.csv") == sentence
    path = write(out, changes={"config": "other"})
    assert fail("report", out, "--configs", configs) == f"{path}: `config` must be {POOLED}, but is 'other'."


def test_the_page_may_lie_elsewhere_and_is_written_again_after_a_kill(
    run: Any, fail: Any, out: Path, configs: Path, tmp_path: Path
) -> None:
    write_topk(out)
    docs = tmp_path / "docs"
    docs.mkdir()
    command = ["report", out, "--configs", configs, "--to", docs / "ours.md"]
    assert run(*command).exit_code == 0
    written = {path.name: path.read_bytes() for path in docs.iterdir()}
    assert sorted(written) == ["ours-topk.png", "ours.csv", "ours.md"] and [*out.iterdir()] == [out / "topk"]
    # The page comes last.
    (docs / "ours.md").unlink()
    assert run(*command).exit_code == 0
    assert {path.name: path.read_bytes() for path in docs.iterdir()} == written
    (docs / "ours.md").unlink()
    (docs / "ours.csv").write_text("of another report")
    sentence = f"--to must be a page beside which no other report's files lie, but there is {docs / 'ours.csv'}."
    assert fail(*command) == sentence and sorted(path.name for path in docs.iterdir()) == ["ours-topk.png", "ours.csv"]


def test_a_damaged_result_or_a_failure_in_drawing_leaves_the_old_report(
    out: Path, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = write_report(out, configs).page.read_bytes()
    damaged = write(out)
    damaged.write_text("{")
    with pytest.raises(UserError, match="must hold one JSON object"):
        write_report(out, configs)
    damaged.unlink()

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(report_module, "draw_speed_ups", fail)
    with pytest.raises(MemoryError):
        write_report(out, configs)
    assert (out / "report.md").read_bytes() == page
