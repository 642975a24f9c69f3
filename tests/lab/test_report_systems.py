"""The report on systems of others: never is a figure compared without what its system starts from."""

import csv
from pathlib import Path
from typing import Any

import pytest
from result_files import write

from lab.report import write_report

CONFIGS = Path(__file__).parents[2] / "configs"
DOCUMENTS = {
    "govreport": {"train": 17517, "valid": 973, "test": 973},
    "pubmed": {"train": 119924, "valid": 6633, "test": 6658},
}
SECTIONS = {"govreport": "GovReport", "pubmed": "PubMed"}


@pytest.fixture
def section(tmp_path: Path) -> Any:
    """Writes results of configs on a corpus, and gives the lines of the report's section."""

    def written(data: str, *configs: str, **changes: Any) -> list[str]:
        corpus = {"name": data, "documents": DOCUMENTS[data]}
        for config in configs:
            write(tmp_path, f"lecture/{config}", {"times": None, "corpus": corpus, **changes}, data)
        page = write_report(tmp_path, CONFIGS).page.read_text().splitlines()
        start = page.index(f"## {SECTIONS[data]}: systems for long documents")
        end = next(n for n in range(start + 1, len(page)) if page[n].startswith("## "))
        return [line for line in page[start:end] if line]

    return written


def test_a_row_names_what_the_published_system_and_ours_start_from(section: Any) -> None:
    assert (
        "| lsh_window | lsh and windows | 4096 → 4096 | BART-large | nothing | 54.75 | 43.40 [43.10, 43.70] | 21.36 "
        "| 16.60 [16.40, 16.80] | 51.27 | 38.00 [37.80, 38.20] |"
    ) in section("govreport", "lsh_window")


def test_published_figures_never_stand_there_without_the_sentence_on_starts(section: Any) -> None:
    text = " ".join(section("pubmed", "lsh_window"))
    assert "47.54" in text
    assert "**Different starts.** Published systems start from pretrained weights where the table names them" in text
    assert "ours start from nothing" in text and "compare ours with ours." in text


def test_systems_that_are_only_published_stand_beside_ours(section: Any) -> None:
    lines = section("pubmed", "lsh_window", "lsh_window_pyramidion")
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[2:] for line in lines if "|" in line}
    assert cells["pegasus"] == ["1024 → 1024", "PEGASUS-large", *("–", "45.97", "–", "20.15", "–", "41.34", "–")]
    assert cells["tlm"][:3] == ["–", "–", "–"]
    assert cells["lsh_window_pyramidion"][:4] == ["3×4096 > 2048 > 2×512 → 512", "–", "nothing", "–"]
    assert "full" not in cells


@pytest.mark.parametrize("change", [{"scale": "tiny"}, {"corpus": {"name": "sample", "documents": {"train": 200}}}])
def test_without_comparable_results_nothing_published_is_there(change: dict[str, Any], section: Any) -> None:
    lines = section("pubmed", "lsh_window", **change)
    assert not any("pegasus" in line or "47.54" in line or "BART" in line for line in lines)
    assert lines[-1].split(" | ")[3] == "nothing"


def test_what_a_paper_says_of_significance_is_said(section: Any) -> None:
    assert "The paper of lsh_hepos and sinkhorn_hepos: p &lt; 0.0005." in section(
        "govreport", "lsh_hepos", "sinkhorn_hepos"
    )


def test_what_is_only_published_is_never_missing(section: Any, tmp_path: Path) -> None:
    section("pubmed", "lsh_window")
    report = write_report(tmp_path, CONFIGS)
    with report.page.with_suffix(".csv").open(newline="") as file:
        rows = {(row["table"], row["row"]): row for row in csv.DictReader(file)}
    pegasus = rows["lecture_pubmed", "pegasus"]
    assert (pegasus["status"], pegasus["paper_starts_from"], pegasus["paper_rl"]) == (
        *("published only", "PEGASUS-large", "41.34"),
    )
    assert rows["lecture_pubmed", "lsh_window"]["status"] == "run"
    systems = sum(table == "lecture_arxiv" and row["status"] == "not run" for (table, _), row in rows.items())
    assert f"arXiv {systems} of {systems}, " in " ".join(report.page.read_text().split())
    assert "1 run, 0 partly run" in report.summary
