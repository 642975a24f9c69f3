"""Rows that were trained for several seeds: what is read of them, how they compare, and what the page says."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from result_files import changed, write
from tables import for_each

from lab.catalogue import jobs_for, read_catalogue
from lab.report import write_report
from lab.results import check_scale, read_runs
from lab.seeds import SeededRow, by_seed, compared, differences, read_seeds, reference_of
from pyramidions.base.errors import UserError
from pyramidions.scoring.scores import pooled

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
    result = {
        "config": config,
        "scale": "small",
        "seed": seed,
        "times": None,
        "memory": {"bytes": 2**30 + seed * 2**28, "of": "process"},
        "losses": {
            "split": "valid",
            "own": told(mean),
            "another": told(mean + cost),
            "cost": told(cost),
            "copied": told(cost),
        },
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


def rows(out: Path) -> list[SeededRow]:
    return read_seeds(read_runs(out, CATALOGUE))


def test_seeds_are_numbers_in_their_order(out: Path) -> None:
    assert [list(row.results) for row in rows(out)] == [[2, 10], [2, 10]]
    assert [row.row.config for row in rows(out)] == [BLOCKWISE, POOLED]


def test_figures_are_pooled_over_documents_and_seeds(out: Path) -> None:
    estimates = rows(out)[0].estimates
    assert estimates["own"].mean == 5.0 and estimates["own"].low < 5.0 < estimates["own"].high
    assert estimates["cost"] == pytest.approx((0.25, 0.25, 0.25))
    assert estimates["rouge1"].mean == 41.0


def test_pooling_keeps_the_documents_in_the_order_of_their_file(tmp_path: Path) -> None:
    # The bootstrap draws by place: in another order, the same seed gives other intervals.
    losses = {2: [4.0, 9.0, 5.5], 10: [6.0, 1.0, 2.5], 11: [3.0, 3.5, 8.0]}
    for seed, own in losses.items():
        folder = write_seed(tmp_path, BLOCKWISE, seed, own)
        documents = json.loads((folder / "losses.json").read_text())["documents"]
        for each, name in zip(documents, ("z", "a", "m"), strict=True):
            each["id"] = name
        (folder / "losses.json").write_text(json.dumps({"documents": documents}))
    (row,) = rows(tmp_path)
    assert row.estimates["own"] == pooled(np.array([*losses.values()]))


def test_a_loss_is_compared_by_document_with_that_of_blockwise(out: Path) -> None:
    blockwise, pooled_row = rows(out)
    assert reference_of(pooled_row, [blockwise, pooled_row]) is blockwise
    assert reference_of(blockwise, [blockwise, pooled_row]) is None
    assert pooled_row.loss_above(blockwise) == pytest.approx((0.5, 0.5, 0.5))


def test_losses_are_compared_over_the_seeds_that_both_rows_have(out: Path) -> None:
    write_seed(out, BLOCKWISE, 11, [1.0, 2.0, 3.0])
    blockwise, pooled_row = rows(out)
    assert pooled_row.loss_above(blockwise) == pytest.approx((0.5, 0.5, 0.5))
    only = replace(blockwise, figures={"own": {11: blockwise.figures["own"][11]}})
    assert pooled_row.loss_above(only) is None and only.loss_above(only) == pytest.approx((0.0, 0.0, 0.0))


def test_the_reference_reads_as_many_tokens(out: Path) -> None:
    for config in ("table2/04_blockwise_2k", "table4/mean"):
        write_seed(out, config, 2, [4.0, 5.0, 6.0])
    found = rows(out)
    references = {row.row.config: reference_of(row, found) for row in found}
    names = {config: reference and reference.row.config for config, reference in references.items()}
    assert names[POOLED] == BLOCKWISE and names["table4/mean"] == "table2/04_blockwise_2k"


def test_other_documents_are_not_compared(out: Path) -> None:
    blockwise, pooled_row = rows(out)
    others = {seed: of.rename(lambda name: f"other {name}") for seed, of in pooled_row.figures["own"].items()}
    assert replace(pooled_row, figures={"own": others}).loss_above(blockwise) is None
    with pytest.raises(UserError, match="^The seeds of arxiv/table2/08_.* must have the same documents, but differ.$"):
        replace(pooled_row, figures={"own": {2: others[2], 10: pooled_row.figures["own"][10]}}).values("own", [2, 10])


def test_the_table_has_intervals_differences_and_what_another_document_costs(out: Path) -> None:
    blockwise, pooled_row = (dict(line) for _, line in compared(rows(out)).iterrows())
    assert (pooled_row["loss over"], pooled_row["another costs"]) == ("0.500 [0.500, 0.500] 5", "0.000 [0.000, 0.000]")
    assert (pooled_row["copied"], blockwise["copied"]) == ("0.0%", "25.0%")
    assert (blockwise["loss over"], blockwise["another costs"]) == ("", "0.250 [0.250, 0.250]")
    names = ("architecture", "encoder → decoder", "seeds", "updates", "minutes", "GiB")
    assert [blockwise[name] for name in names] == [
        *("blockwise", "2048 → 2048", "2, 10"),
        *("1,000", "60.0 to 60.0", "3.50"),
    ]


def test_every_row_is_compared_with_each_better_one(out: Path) -> None:
    for seed in (2, 10):
        write_seed(out, "table4/mean", seed, [4.2, 5.2, 6.2])
    found = differences(rows(out))
    assert list(found) == ["loss above", "5 blockwise", "mean transpooler"]
    assert found.values.tolist() == [
        ["mean transpooler", "0.200 [0.200, 0.200]", ""],
        ["8 transpooler", "0.500 [0.500, 0.500]", "0.300 [0.300, 0.300]"],
    ]


def test_each_seed_has_a_line_of_numbers_and_empty_cells_for_what_was_not_run(out: Path) -> None:
    write_seed(out, "table4/mean", 2, [4.0, 5.0], losses=None, training=None)
    report = write_report(out, CONFIGS)
    found = pd.read_csv(out / "report-seeds.csv")
    assert found[["row", "seed", "loss", "updates"]].values.tolist()[:4] == [
        *(["5", 2, 5, 1000], ["5", 10, 5, 1000], ["8", 2, 5.5, 1000], ["8", 10, 5.5, 1000])
    ]
    assert found.loc[4, ["loss", "updates", "minutes"]].isna().all() and found.loc[4, "memory_bytes"] == 1610612736
    assert list(by_seed(rows(out))) == list(found) and "Rows: " in report.summary


def test_the_page_has_the_tables_and_the_plot_of_losses(out: Path) -> None:
    report = write_report(out, CONFIGS)
    page = report.page.read_text()
    assert "\n## Rows compared with each other\n" in page and "\n## Losses: row minus column\n" in page
    assert "](report-losses.png)" in page and (out / "report-losses.png").read_bytes().startswith(b"\x89PNG")
    assert "run for seeds" in report.summary


def test_a_picture_of_losses_that_are_gone_is_taken_away(tmp_path: Path) -> None:
    write_seed(tmp_path, BLOCKWISE, 2, [4.0, 5.0], losses=None)
    (tmp_path / "report-losses.png").write_bytes(b"of an earlier report")
    assert tmp_path / "report-losses.png" not in write_report(tmp_path, CONFIGS).files
    assert not (tmp_path / "report-losses.png").exists()


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


@for_each("content", ["", "[]", '{"documents": [{"id": "a"}]}', '{"documents": [{"own": "x"}]}'])
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
