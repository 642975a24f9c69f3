"""Rows that were trained for several seeds: what is read of them, how they compare, and what the page says."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from result_files import changed, write

from lab.catalogue import jobs_for, read_catalogue
from lab.report import write_report
from lab.results import check_scale
from lab.seeds import SeededRow, read_seeds, reference_of
from pyramidions.errors import UserError

CONFIGS = Path(__file__).parents[2] / "configs"
CATALOGUE = read_catalogue(CONFIGS)
BLOCKWISE, POOLED = "table2/05_blockwise_8k", "table2/08_transpooler_8k_2k"


def write_seed(out: Path, config: str, seed: int, own: list[float], cost: float = 0.25, **changes: Any) -> Path:
    """Write what a seed of a row leaves: result.json, losses.json and scores.json."""
    folder = out / "arxiv" / config / f"seed-{seed}"
    folder.mkdir(parents=True)

    def told(value: float) -> dict[str, float]:
        return {"mean": value, "low": value, "high": value}

    mean = sum(own) / len(own)
    hardware = {"device": "a CPU", "threads": 2, "gpus": 0, "nodes": 1}
    start = {"seconds": 120.0, "updates": 500, "epochs": 1, "best": None, "hardware": hardware}
    result = {
        "config": config,
        "scale": "small",
        "seed": seed,
        "times": None,
        "start": start,
        "memory": {"bytes": 2**30 + seed * 2**28, "of": "process"},
        "losses": {"split": "valid", "own": told(mean), "another": told(mean + cost), "cost": told(cost)},
        "hardware": hardware,
    }
    (folder / "result.json").write_text(json.dumps(changed({**result, **changes})))
    losses = [{"id": f"d{number}", "own": loss, "another": loss + cost} for number, loss in enumerate(own)]
    (folder / "losses.json").write_text(json.dumps({"documents": losses}))
    scores = [{"id": f"t{n}", "generate.txt": {"rouge1": 40 + n, "rouge2": 16, "rougeLsum": 38}} for n in range(3)]
    (folder / "scores.json").write_text(json.dumps({"documents": scores}))
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Two rows of two seeds, of which the pooled one has a loss that is 0.5 higher on every document."""
    for seed in (2, 10):
        write_seed(tmp_path, BLOCKWISE, seed, [4.0, 5.0, 6.0])
        write_seed(tmp_path, POOLED, seed, [4.5, 5.5, 6.5], cost=0.0)
    return tmp_path


def test_seeds_are_numbers_in_their_order(out: Path) -> None:
    rows = read_seeds(out, CATALOGUE)
    assert [list(row.results) for row in rows.values()] == [[2, 10], [2, 10]]
    assert list(rows) == [("arxiv", BLOCKWISE), ("arxiv", POOLED)]


def test_figures_are_pooled_over_documents_and_seeds(out: Path) -> None:
    row = read_seeds(out, CATALOGUE)["arxiv", BLOCKWISE]
    assert row.estimates["own"].mean == 5.0 and row.estimates["own"].low < 5.0 < row.estimates["own"].high
    assert row.estimates["cost"] == pytest.approx((0.25, 0.25, 0.25))
    assert row.estimates["rouge1"].mean == 41.0
    # 1,000 updates and 500 before; 3,600 s, the 120 s before among them.
    assert (row.updates, row.minutes, row.memory) == (1500, [60.0, 60.0], 2**30 + 10 * 2**28)


def test_a_loss_is_compared_by_document_with_that_of_blockwise(out: Path) -> None:
    blockwise, pooled = read_seeds(out, CATALOGUE).values()
    reference = reference_of(pooled, [blockwise, pooled])
    assert reference is blockwise and reference_of(blockwise, [blockwise, pooled]) is None
    assert pooled.loss_above(blockwise) == pytest.approx((0.5, 0.5, 0.5))


def test_losses_are_compared_over_the_seeds_that_both_rows_have(out: Path) -> None:
    write_seed(out, BLOCKWISE, 11, [1.0, 2.0, 3.0])
    blockwise, pooled = read_seeds(out, CATALOGUE).values()
    assert pooled.loss_above(blockwise) == pytest.approx((0.5, 0.5, 0.5))
    only = replace(blockwise, losses={11: blockwise.losses[11]})
    assert pooled.loss_above(only) is None and only.loss_above(only) == pytest.approx((0.0, 0.0, 0.0))


def test_the_reference_reads_as_many_tokens(out: Path) -> None:
    for config in ("table2/04_blockwise_2k", "table4/mean"):
        write_seed(out, config, 2, [4.0, 5.0, 6.0])
    rows = read_seeds(out, CATALOGUE)
    references = {key[1]: reference_of(row, list(rows.values())) for key, row in rows.items()}
    names = {config: reference and reference.row.config for config, reference in references.items()}
    assert names[POOLED] == BLOCKWISE and names["table4/mean"] == "table2/04_blockwise_2k"


def test_a_row_that_several_tables_list_is_not_compared_with_itself(out: Path) -> None:
    blockwise, pooled = read_seeds(out, CATALOGUE).values()
    elsewhere = replace(blockwise, row=blockwise.row.model_copy(update={"table": "table8", "row": "28"}))
    assert reference_of(elsewhere, [blockwise, pooled]) is None


def test_other_documents_are_not_compared(out: Path) -> None:
    blockwise, pooled = read_seeds(out, CATALOGUE).values()
    others = {seed: {f"other {name}": each for name, each in of.items()} for seed, of in pooled.losses.items()}
    assert SeededRow(pooled.row, pooled.results, others, {}).loss_above(blockwise) is None


def test_the_page_has_a_table_with_intervals_differences_and_what_another_document_costs(out: Path) -> None:
    report = write_report(out, CONFIGS)
    page = report.page.read_text()
    section = page.split("## Table 2: shallow models\n")[1].split("\n## ")[0]
    *_, blockwise, pooled = (line.split(" | ") for line in section.splitlines() if line.startswith("| "))
    assert blockwise[:5] == ["| 5", "blockwise", "2048 → 2048", "2, 10", "1,500"]
    assert pooled[6:8] == ["0.500 [0.500, 0.500] 5", "0.000 [0.000, 0.000]"]
    assert blockwise[6] == "–" and blockwise[7] == "0.250 [0.250, 0.250]" and blockwise[8].startswith("41.00 [")
    assert pooled[11:] == ["60.0 to 60.0", "3.50 |"]
    assert "2 rows compared with each other, seeds 2, 10." in page and report.summary in page
    assert "What is missing" not in page and "Tiny" not in page


def test_losses_are_drawn_beside_the_page(out: Path) -> None:
    report = write_report(out, CONFIGS)
    drawn = out / "report-losses.png"
    assert drawn in report.files and drawn.read_bytes().startswith(b"\x89PNG")
    assert "![Loss of each row with its own document and with another](report-losses.png)" in report.page.read_text()


def test_a_picture_of_losses_that_are_gone_is_taken_away(tmp_path: Path) -> None:
    write_seed(tmp_path, BLOCKWISE, 2, [4.0, 5.0], losses=None)
    (tmp_path / "report-losses.png").write_bytes(b"of an earlier report")
    assert tmp_path / "report-losses.png" not in write_report(tmp_path, CONFIGS).files
    assert not (tmp_path / "report-losses.png").exists()


def test_every_row_is_compared_with_each_better_one(out: Path) -> None:
    for seed in (2, 10):
        write_seed(out, "table4/mean", seed, [4.2, 5.2, 6.2])
    page = write_report(out, CONFIGS).page.read_text()
    section = page.split("## Losses of all rows: row minus column\n\n")[1].split("\n\n")[0]
    assert section.splitlines() == [
        "| loss above | 5 blockwise | mean transpooler |",
        "| --- | ---: | ---: |",
        "| mean transpooler | 0.200 [0.200, 0.200] |  |",
        "| 8 transpooler | 0.500 [0.500, 0.500] | 0.300 [0.300, 0.300] |",
    ]


def test_each_seed_has_a_line_of_numbers(out: Path) -> None:
    path = next(path for path in write_report(out, CONFIGS).files if path.name == "report-seeds.csv")
    rows = list(csv.DictReader(path.open(newline="")))
    assert [(row["row"], row["seed"], row["loss"], row["updates"]) for row in rows] == [
        *(("5", "2", "5", "1500"), ("5", "10", "5", "1500")),
        *(("8", "2", "5.5", "1500"), ("8", "10", "5.5", "1500")),
    ]


def test_what_forbids_a_comparison_stands_at_the_top(out: Path) -> None:
    trained = {"seconds": 60.0, "updates": 7, "epochs": 1, "best": None}
    write_seed(out, "table4/mean", 2, [4.0, 5.0], training=trained, losses=None)
    page = write_report(out, CONFIGS).page.read_text()
    assert [line.split("**")[1] for line in page.splitlines() if line.startswith("> **")] == [
        *("Unequal updates.", "Unequal seeds.")
    ]
    assert "- table4/mean on arxiv, seed 2: loss not run" in page


def test_scales_are_not_mixed(out: Path) -> None:
    write(out, "table4/mean", {"scale": "tiny"})
    with pytest.raises(UserError, match="^OUT must hold results of one scale, but .* has some of small and tiny.$"):
        write_report(out, CONFIGS)
    with pytest.raises(UserError, match="^--out must hold results of the scale tiny only, but .* the scale small.$"):
        check_scale(out, "tiny")


def test_a_seed_in_the_folder_of_another_is_refused(out: Path) -> None:
    (out / "arxiv" / POOLED / "seed-2").rename(out / "arxiv" / POOLED / "seed-3")
    with pytest.raises(UserError, match="seed-3/result.json: `seed` must be 3, but is 2.$"):
        write_report(out, CONFIGS)


@pytest.mark.parametrize("content", ["", "[]", '{"documents": [{"id": "a"}]}', '{"documents": [{"own": "x"}]}'])
def test_damaged_losses_are_one_sentence(out: Path, content: str) -> None:
    (out / "arxiv" / POOLED / "seed-2" / "losses.json").write_text(content)
    with pytest.raises(UserError, match="losses.json must hold the own and another of each document, but does not.$"):
        write_report(out, CONFIGS)


def test_every_row_is_trained_for_a_seed_before_any_is_for_the_next() -> None:
    jobs = jobs_for(CATALOGUE, ["table2"], ["5", "8"], [3, 1])
    assert [(job.row.row, job.seed) for job in jobs] == [("5", 3), ("8", 3), ("5", 1), ("8", 1)]
    assert jobs[0].wanted == {"train", "loss", "generate", "score"}
    assert jobs[0].name == "arxiv/table2/05_blockwise_8k, seed 3"


def test_rows_that_are_only_timed_have_no_seed() -> None:
    jobs = jobs_for(CATALOGUE, ["table10"], ["5"], [1, 2])
    assert [(job.seed, job.wanted) for job in jobs] == [(None, {"time"})]
