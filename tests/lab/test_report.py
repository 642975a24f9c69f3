import csv
from pathlib import Path

import pytest
from result_files import CATALOGUE, DEEP, DELETED, POOLED, VANILLA, changed, write, write_topk

from lab import report as report_module
from lab.paper_tables import cell
from lab.report import write_report
from pyramidions.errors import UserError

TRAINING_ONLY = {
    "times.decode_tokens": [],
    "times.reference": "figure4/vanilla_16_layers",
    "scores": None,
    "training": None,
}
SAMPLE = {"name": "sample", "documents": {"train": 200, "valid": 20, "test": 40}}
PNG = b"\x89PNG\r\n"


@pytest.fixture
def configs(tmp_path):
    folder = tmp_path / "configs"
    folder.mkdir()
    (folder / "paper.csv").write_text(CATALOGUE)
    return folder


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def lines(out, configs):
    """Writes the report and gives the lines of the page."""
    return lambda: write_report(out, configs).page.read_text().splitlines()


@pytest.fixture
def text(lines):
    """Writes the report and gives the page without line breaks."""
    return lambda: " ".join(line.removeprefix("> ").strip() for line in lines())


def test_a_row_stands_beside_the_papers(out, lines):
    write(out)
    # 4.46 / 1.26 and 13.27 / 5.51 are the paper's; 1 / 0.25 and 1 / 0.4 are ours.
    assert (
        "| 8 | transpooler | 8192 → 2048 | 42.7 [42.4, 43.0] | 43.4 [43.1, 43.7] ▲ | 16.7 [16.5, 16.9] "
        "| 16.6 [16.4, 16.8] | 3.54 | 4.00 [3.20, 5.00] | 2.41 | 2.50 [2.00, 3.12] |"
    ) in lines()


def test_a_row_without_result_is_counted_and_not_shown(out, lines):
    write(out)
    assert not any(line.startswith(("| 3 |", "| 11 |", "| mean |", "| pyramidion-16 |")) for line in lines())
    assert "- Rows that were not run: table 2 2 of 3, table 4 1 of 1, figure 4 1 of 1." in lines()
    assert [line for line in lines() if line.startswith("## ")] == [
        "## How to read this",
        "## Table 2: shallow models",
        "## Table 10: seconds a batch",
        "## What is missing",
    ]


def test_two_tiny_rows_are_a_page_and_not_ten(out):
    tiny = {"scale": "tiny", "corpus": SAMPLE}
    for config in ("table2/05_blockwise_8k", "table2/07_transpooler_8k_512"):
        write(out, config, tiny)
    page = write_report(out, Path("configs")).page.read_text().splitlines()
    assert len(page) < 80
    assert sum("not run" in line for line in page) <= 4
    expected = "table 2 18 of 20, table 3 4 of 4, table 4 8 of 8, table 7 6 of 6, table 8 6 of 6, figure 4 16 of 18."
    assert " ".join(line.strip() for line in page).count(expected) == 1


def test_other_data_is_named_and_the_papers_rouge_left_out(out, lines, text):
    write(out, changes={"corpus": SAMPLE})
    assert (
        "| 8 | transpooler | 8192 → 2048 | 43.4 [43.1, 43.7] | 16.6 [16.4, 16.8] | 3.54 | 4.00 [3.20, 5.00] | 2.41 "
        "| 2.50 [2.00, 3.12] |"
    ) in lines()
    assert (
        "**Other data.** sample in place of arXiv, documents: 200 for training, 20 for validation, 40 for testing. The "
        "paper's corpus has 203,037 for training and 6,440 for testing: its ROUGE is left out."
    ) in text()


def test_beside_rows_on_the_papers_data_others_say_why_they_are_not_compared(out, lines):
    write(out)
    write(out, VANILLA, {"corpus": SAMPLE})
    write(out, "table2/11_lsh_8k", {"scale": "tiny", "corpus": SAMPLE})
    table = {line.split(" | ")[0]: line.split(" | ") for line in reversed(lines()) if "[43.1" in line}
    assert table["| 8"][3] == "42.7 [42.4, 43.0]"
    assert table["| 3"][3] == "other data"
    assert table["| 11 (tiny)"][3] == table["| 11 (tiny)"][7] == "tiny model"


def test_data_that_a_result_does_not_name_is_not_compared(out, lines, text):
    write(out, changes={"corpus": DELETED})
    assert not any("42.7" in line for line in lines())
    assert "**Unknown data.** A result does not say what it was trained on" in text()


def test_a_corpus_without_its_empty_documents_is_the_papers(out, lines):
    write(out, changes={"corpus": {"name": "arxiv", "documents": {"train": 202914, "valid": 6436, "test": 6440}}})
    assert any("| 42.7 [42.4, 43.0] | 43.4 [43.1, 43.7] ▲ |" in line for line in lines())


def test_a_row_without_the_papers_times_or_intervals_says_so(out, lines):
    write(out, "table4/mean", {"times": None})
    assert "| mean | transpooler | 2×2048 → 512 | 38.1 | 43.4 [43.1, 43.7] | 13.9 | 16.6 [16.4, 16.8] |" in lines()


def test_table_10_has_seconds_and_both_ratios(out, lines):
    write(out)
    page = lines()
    decoding = page[page.index("### Decoding 256 tokens") :]
    assert "| 8 | transpooler | 8192 → 2048 | 2.71 | 0.300 ± 0.010 | 2.42 | 2.00 [1.60, 2.50] |" in decoding
    write(out, "table2/11_lsh_8k")
    page = lines()
    decoding = page[page.index("### Decoding 256 tokens") :]
    assert "| 11 | lsh | 8192 → 8192 | – | 0.300 ± 0.010 | – | 2.00 [1.60, 2.50] |" in decoding
    assert any(line.startswith("Row 11: the paper says 0.87 s for 256 tokens, which cannot be right") for line in page)


def test_a_heading_says_how_many_tokens_were_decoded_in_place_of_the_papers(out, lines):
    short, long = (changed({})["times"][name] for name in ("decode_256", "decode_512"))
    write(out, changes={"times.decode_tokens": [16, 32], "times.decode_16": short, "times.decode_32": long})
    assert {"### Decoding 256 tokens (ours: 16)", "### Decoding 512 tokens (ours: 32)"} <= set(lines())


def test_figure_4_has_speed_ups_over_as_many_layers(out, lines):
    write(out, DEEP, TRAINING_ONLY)
    page = lines()
    row = "| pyramidion-16 | pyramidion | 2×8192 > 2048 > 2×512 → 512 | 0.300 ± 0.010 | up to 3.8 | 4.00 [3.20, 5.00] |"
    assert row in page
    assert "![Figure 4: a training step by number of layers](report-figure4.png)" in page
    assert (out / "report-figure4.png").read_bytes().startswith(PNG)


def test_a_lower_score_is_marked_and_one_that_overlaps_is_not(out, lines):
    write(out, changes={"scores.rouge1": {"mean": 42, "low": 41.7, "high": 42.4}})
    assert any("| 42.0 [41.7, 42.4] |" in line for line in lines())
    (out / "arxiv" / POOLED / "result.json").unlink()
    (out / "arxiv" / POOLED).rmdir()
    write(out, changes={"scores.rouge1": {"mean": 42, "low": 41.7, "high": 42.3}})
    assert any("| 42.0 [41.7, 42.3] ▼ |" in line for line in lines())


def test_tiny_results_are_said_to_prove_nothing_and_carry_no_marks(out, lines, text):
    write(out, changes={"scale": "tiny"})
    # A sixteenth of the paper's lengths, and none of its figures.
    assert (
        "| 8 (tiny) | transpooler | 512 → 128 | 43.4 [43.1, 43.7] | 16.6 [16.4, 16.8] | 4.00 [3.20, 5.00] "
        "| 2.50 [2.00, 3.12] |"
    ) in lines()
    assert "**Tiny models.** All results here are of tiny scale." in text()
    assert "say nothing about the paper's claims" in text()


def test_mixed_scales_hardware_and_data_are_said_at_the_top(out, lines, text):
    write(out)
    other = {"scale": "tiny", "hardware.device": "a CPU", "hardware.gpus": 0, "data_hash": "ffff", "commit": "38ff4f9"}
    write(out, VANILLA, other)
    page = lines()
    assert [line[:22] for line in page if line.startswith("> **")] == [
        "> **Mixed scales.** 1 ",
        "> **Mixed hardware.** ",
        "> **Mixed data.** Resu",
    ]
    assert "1 of 2 results is of tiny scale" in text()
    start = page.index("- Hardware, **mixed**:")
    assert page[start + 1 : start + 4] == [
        "  - `table2/03_vanilla_8k`: a CPU, 8 threads",
        "  - `table2/08_transpooler_8k_2k`: NVIDIA H200, 8 threads, 8 GPUs",
        "- Commit, **mixed**:",
    ]


def test_alike_results_are_described_once(out, lines):
    write(out)
    write(out, VANILLA)
    page = lines()
    assert not any(line.startswith("> ") for line in page)
    data = "- Data: arxiv, documents: 203,037 for training, 6,436 for validation, 6,440 for testing; hash 3f5c"
    for line in ("- Commit: 8dd1a12", data, "- Hardware: NVIDIA H200, 8 threads, 8 GPUs"):
        assert line in page


def test_missing_parts_are_listed(out, lines):
    write(out, changes={"generation": None, "scores": None})
    write(out, VANILLA, {"times.decode_256": DELETED, "times.decode_512": DELETED})
    write(out, "table2/11_lsh_8k", {"times.reference": POOLED})
    page = lines()
    assert page[page.index("## What is missing") + 2 :] == [
        "- Table 2, row 3, times of decoding: not run",
        "- Table 2, row 8, generation: not run; scores: not run",
        f"- Table 2, row 11, times: relative to {POOLED}, not to {VANILLA}",
        "- Rows that were not run: table 4 1 of 1, figure 4 1 of 1.",
        "- Figures 5 and 6, not run: `scripts/reproduce/figure5.sh` makes them.",
    ]


def test_a_speed_up_over_another_reference_is_not_shown(out, lines, text):
    write(out, changes={"times.reference": "table3/blockwise"})
    row = next(line for line in lines() if line.startswith("| 8 |"))
    assert row.endswith("| 3.54 | other reference | 2.41 | other reference |")
    assert "**Other references.** 1 row timed against another than the paper's." in text()


def test_nothing_run_is_said_in_a_few_lines(out, lines):
    assert lines() == [
        "# The paper's tables and figures, and ours",
        "",
        "Of 5 rows 0 run, 0 partly run, 5 not run; figures 5 and 6 not run.",
        "",
        "## What is missing",
        "",
        "- Rows that were not run: table 2 3 of 3, table 4 1 of 1, figure 4 1 of 1.",
        "- Figures 5 and 6, not run: `scripts/reproduce/figure5.sh` makes them.",
    ]
    assert not list(out.glob("*.png"))


def test_figures_5_and_6_come_from_the_benchmark(out, lines):
    write_topk(out)
    page = lines()
    assert "From `topk/topk.csv`: x86_64, 2 threads; commit 38ff4f9." in page
    assert "What the benchmark says: sorting pays." in page
    assert (out / "report-topk.png").read_bytes() == (out / "topk" / "topk.png").read_bytes()
    assert any(line.endswith("](report-topk.png)") for line in page)


def test_a_plot_that_nothing_stands_behind_any_more_is_removed(out, lines):
    write_topk(out)
    lines()
    for path in (out / "topk").iterdir():
        path.unlink()
    lines()
    assert not list(out.glob("*.png"))


def test_text_from_files_is_shown_as_it_is(out, lines):
    write(out, changes={"hardware.device": "*a* <b> [c](d) $e_f", "scores": None})
    assert r"- Hardware: \*a\* &lt;b> \[c\](d) \$e_f, 8 threads, 8 GPUs" in lines()


def test_no_line_of_prose_is_long(out, lines):
    write(out)
    write(out, VANILLA, {"hardware.device": "a CPU of many words " * 20, "scale": "tiny"})
    assert max(len(line) for line in lines() if not line.startswith("|")) <= 110


def test_the_csv_file_has_one_line_a_row(out, configs):
    write(out)
    with write_report(out, configs).files[1].open(newline="") as file:
        rows = {row["row"]: row for row in csv.DictReader(file)}
    assert list(rows) == ["3", "8", "11", "mean", "pyramidion-16"]
    assert {name: rows["8"][name] for name in ("table", "config", "data", "status", "scale", "commit", "device")} == {
        "table": "table2",
        "config": POOLED,
        "data": "arxiv",
        "status": "run",
        "scale": "paper",
        "commit": "8dd1a12",
        "device": "NVIDIA H200",
    }
    names = ("paper_r1_low", "rouge1", "train_s", "paper_train_speed_up", "train_speed_up", "train_speed_up_high")
    assert [rows["8"][name] for name in names] == ["42.4", "43.4", "0.3", "3.53968", "4", "5"]
    assert [rows["11"][name] for name in ("status", "scale", *names)] == [
        "not run",
        "",
        "35.5",
        "",
        "",
        "2.63905",
        "",
        "",
    ]


def test_rows_of_the_real_catalogue_stand_beside_the_papers_figures(out):
    for config in ("table3/deep_pyramidion", "table8/32_transpooler_2k_512_without_blocks"):
        write(out, config, {"times": None})
    page = write_report(out, Path("configs")).page.read_text()
    row = "| deep_pyramidion-arxiv | pyramidion | 2×8192 > 2048 > 3×512 → 512 | 47.15 | 43.40 [43.10, 43.70] | 19.99 "
    assert f"{row}| 16.60 [16.40, 16.80] | 1.79 | not run | 4.58 | not run |" in page
    assert "| 32 | transpooler, no blocks | 2048 → 512 |" in page


@pytest.mark.parametrize("name", ["report.txt", "nowhere/report.md"])
def test_the_page_must_be_a_markdown_file_in_a_folder(out, configs, name):
    with pytest.raises(UserError, match=f"^--to must be a .md file in a folder that exists, but is {out / name}.$"):
        write_report(out, configs, out / name)


def test_a_damaged_result_leaves_the_old_report(out, configs):
    page = write_report(out, configs).page.read_bytes()
    write(out).write_text("{")
    with pytest.raises(UserError, match="must hold one JSON object"):
        write_report(out, configs)
    assert (out / "report.md").read_bytes() == page


def test_a_failure_in_drawing_writes_nothing(out, configs, monkeypatch):
    def fail(*_):
        raise MemoryError

    write(out, DEEP, TRAINING_ONLY)
    monkeypatch.setattr(report_module, "draw_speed_ups", fail)
    with pytest.raises(MemoryError):
        write_report(out, configs)
    assert [path.name for path in out.iterdir()] == ["arxiv"]


def test_text_in_a_cell_is_shown_as_in_a_model_card() -> None:
    assert cell("a|b <i> _c_ $1") == "a\\|b &lt;i> \\_c\\_ \\$1"


def test_figures_beside_rouge_have_a_table_and_columns_of_their_own(out, configs, lines):
    write(out, changes={"scores.meteor": {"mean": 20.5, "low": 20.25, "high": 20.75}})
    found = lines()
    table = found[found.index("## Other metrics") + 2 :]
    assert table[0] == "| row | architecture | encoder → decoder | METEOR |"
    assert table[2] == "| 8 | transpooler | 8192 → 2048 | 20.50 [20.25, 20.75] |"
    with write_report(out, configs).files[1].open(newline="") as file:
        rows = {row["row"]: row for row in csv.DictReader(file)}
    assert (rows["8"]["meteor"], rows["8"]["meteor_low"], rows["3"]["meteor"]) == ("20.5", "20.25", "")


def test_without_other_figures_there_is_no_such_table(out, lines):
    write(out)
    assert "## Other metrics" not in lines()
