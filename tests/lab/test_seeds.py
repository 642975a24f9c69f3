"""Rows that were trained for several seeds: what is read of them, how they compare, and what the page says."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refused
from result_files import changed, write
from scipy.stats import ttest_rel

from lab.catalogue import PaperRow, read_catalogue
from lab.report import write_report
from lab.results import Language, Result, check_scale, read_runs
from lab.seeds import SeededRow, bits_per_character, by_seed, compared, differences, read_seeds, reference_of
from pyramidions.scoring.scores import pooled

pytestmark = pytest.mark.nightly
CONFIGS = Path(__file__).parents[2] / "configs"
CATALOGUE = read_catalogue(CONFIGS)
BLOCKWISE, POOLED = "table2/05_blockwise_8k", "table2/08_transpooler_8k_2k"


def write_seed(
    out: Path, config: str, seed: int, own: list[float], cost: float = 0.25, names: str = "abcdef", **changes: Any
) -> None:
    """Write what a seed of a row leaves: result.json, losses.json and scores.json."""
    folder = out / "arxiv" / config / f"seed-{seed}"
    folder.mkdir(parents=True)

    def told(value: float) -> dict[str, float]:
        return {"mean": value, "low": value, "high": value}

    mean = sum(own) / len(own)
    losses = {"own": told(mean), "another": told(mean + cost), "cost": told(cost), "copied": told(cost)}
    result: dict[str, Any] = {
        "config": config,
        "scale": "small",
        "seed": seed,
        "times": None,
        "memory": {"bytes": 2**30 + seed * 2**28, "of": "process"},
        "losses": {"split": "valid", **losses},
        "hardware": {"device": "a CPU", "threads": 2, "gpus": 0, "nodes": 1},
    }
    (folder / "result.json").write_text(json.dumps(changed({**result, **changes})))
    documents = [{"id": name, "own": loss, "another": loss + cost} for name, loss in zip(names, own, strict=False)]
    (folder / "losses.json").write_text(json.dumps({"documents": documents}))
    scores = [{"id": f"t{n}", "generate.txt": {"rouge1": 40 + n, "rouge2": 16, "rougeLsum": 38}} for n in range(3)]
    (folder / "scores.json").write_text(json.dumps({"documents": scores}))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Two rows of two seeds, of which the pooled one has a loss that is 0.5 higher on every document."""
    for seed in (2, 10):
        write_seed(tmp_path, BLOCKWISE, seed, [4.0, 5.0, 6.0])
        write_seed(tmp_path, POOLED, seed, [4.5, 5.5, 6.5], cost=0.0)
    return tmp_path


def rows(out: Path) -> list[SeededRow]:
    return read_seeds(read_runs(out, CATALOGUE))


def test_figures_are_pooled_over_documents_in_the_order_of_their_file_and_over_seeds(
    out: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert [(row.row.config, list(row.results)) for row in rows(out)] == [(BLOCKWISE, [2, 10]), (POOLED, [2, 10])]
    estimates = rows(out)[0].estimates
    assert estimates["cost"] == pytest.approx((0.25, 0.25, 0.25)) and estimates["rouge1"].mean == 41.0
    # The bootstrap draws by place: in another order, the same seed gives other intervals.
    other = tmp_path_factory.mktemp("other")
    losses = {2: [4.0, 9.0, 5.5], 10: [6.0, 1.0, 2.5], 11: [3.0, 3.5, 8.0]}
    for seed, own in losses.items():
        write_seed(other, BLOCKWISE, seed, own, names="zam")
    (row,) = rows(other)
    assert row.estimates["own"] == pooled(np.array([*losses.values()]))


def test_a_loss_is_compared_by_document_over_the_seeds_that_both_rows_have(out: Path) -> None:
    write_seed(out, BLOCKWISE, 11, [1.0, 2.0, 3.0])
    blockwise, pooled_row = rows(out)
    assert pooled_row.loss_above(blockwise) == pytest.approx((0.5, 0.5, 0.5))
    only = replace(blockwise, figures={"own": {11: blockwise.figures["own"][11]}})
    assert pooled_row.loss_above(only) is None
    # Other documents are not compared.
    others = {seed: of.rename(lambda name: f"other {name}") for seed, of in pooled_row.figures["own"].items()}
    assert replace(pooled_row, figures={"own": others}).loss_above(blockwise) is None
    with refused(POOLED):
        replace(pooled_row, figures={"own": {2: others[2], 10: pooled_row.figures["own"][10]}}).values("own", [2, 10])


def test_the_reference_reads_as_many_tokens(out: Path) -> None:
    for config in ("table2/04_blockwise_2k", "table4/mean"):
        write_seed(out, config, 2, [4.0, 5.0, 6.0])
    found = rows(out)
    references = {row.row.config: reference_of(row, found) for row in found}
    names = {config: reference and reference.row.config for config, reference in references.items()}
    assert names[POOLED] == BLOCKWISE and names["table4/mean"] == "table2/04_blockwise_2k" and not names[BLOCKWISE]


def test_rows_are_compared_with_their_reference_and_with_each_better_one(out: Path) -> None:
    blockwise, pooled_row = (dict(line) for _, line in compared(rows(out)).iterrows())
    assert (pooled_row["loss over"], pooled_row["another costs"]) == ("0.500 [0.500, 0.500] 5", "0.000 [0.000, 0.000]")
    assert (pooled_row["copied"], blockwise["copied"]) == ("0.0%", "25.0%")
    assert (blockwise["loss over"], blockwise["another costs"]) == ("", "0.250 [0.250, 0.250]")
    names = ("architecture", "encoder → decoder", "seeds", "updates", "minutes", "GiB")
    told = ["blockwise", "2048 → 2048", "2, 10", "1,000", "60.0 to 60.0", "3.50"]
    assert [blockwise[name] for name in names] == told
    for seed in (2, 10):
        write_seed(out, "table4/mean", seed, [4.2, 5.2, 6.2])
    found = differences(rows(out))
    assert list(found) == ["loss above", "5 blockwise", "mean transpooler"]
    assert found.values.tolist() == [
        ["mean transpooler", "0.200 [0.200, 0.200]", ""],
        ["8 transpooler", "0.500 [0.500, 0.500]", "0.300 [0.300, 0.300]"],
    ]


def test_the_page_has_tables_and_a_plot_and_the_csv_a_line_for_each_seed(out: Path) -> None:
    write_seed(out, "table4/mean", 2, [4.0, 5.0], losses=None, training=None)
    report = write_report(out, CONFIGS)
    page = report.page.read_text()
    assert "\n## Rows compared with each other\n" in page and "\n## Losses: row minus column\n" in page
    assert "](report-losses.png)" in page and (out / "report-losses.png").read_bytes().startswith(b"\x89PNG")
    found = pd.read_csv(out / "report-seeds.csv")
    assert found[["row", "seed", "loss", "updates"]].values.tolist()[:4] == [
        *(["5", 2, 5, 1000], ["5", 10, 5, 1000], ["8", 2, 5.5, 1000], ["8", 10, 5.5, 1000])
    ]
    assert found.loc[4, ["loss", "updates", "minutes"]].isna().all() and found.loc[4, "memory_bytes"] == 1610612736
    assert list(by_seed(rows(out))) == list(found) and "run for seeds" in report.summary
    # A picture of losses that are gone is taken away.
    for path in out.rglob("result.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "losses": None}))
    assert out / "report-losses.png" not in write_report(out, CONFIGS).files
    assert not (out / "report-losses.png").exists()


def test_what_does_not_belong_together_is_refused(out: Path) -> None:
    seed = out / "arxiv" / POOLED / "seed-2"
    losses = (seed / "losses.json").read_text()
    for content in ("", "[]", '{"documents": [{"id": "a"}]}', '{"documents": [{"own": "x"}]}'):
        (seed / "losses.json").write_text(content)
        with refused("losses.json"):
            write_report(out, CONFIGS)
    (seed / "losses.json").write_text(losses)
    with refused("--out"):
        check_scale(out, "tiny")
    write(out, "table4/mean", {"scale": "tiny"})
    with refused("small and tiny"):
        write_report(out, CONFIGS)
    seed.rename(seed.parent / "seed-3")
    with refused("`seed`"):
        write_report(out, CONFIGS)


def row(name: str, table: str = "dynamic_pooling_figure3") -> PaperRow:
    return next(row for row in CATALOGUE if (row.table, row.row) == (table, name))


def seeded(of: PaperRow, *bits: float) -> SeededRow:
    results = [Result.model_construct(language=Language(bpc=value)) for value in bits]
    return SeededRow(of, dict(enumerate(results, 1)), {})


def test_a_star_marks_what_is_below_vanilla_and_fixed_by_a_paired_t_test() -> None:
    vanilla, fixed = (1.143, 1.145, 1.141), (1.149, 1.150, 1.150)
    better, unsure = (1.133, 1.136, 1.131), (1.10, 1.15, 1.14)
    bits = {"vanilla": vanilla, "fixed_2": fixed, "unigram_500": better, "gumbel_20": unsure}
    found = bits_per_character([seeded(row(name), *of) for name, of in bits.items()]).set_index("row")
    p = ttest_rel(better, vanilla).pvalue
    assert p < 0.05 and found.loc["unigram_500", "fewer than vanilla, p"] == f"{p:.3f}"
    assert found["fewer than all"].tolist() == ["", "", "*", ""]
    assert found.loc["vanilla", "bits per character"] == "1.143"
    # Models are compared with those of their depth, whichever figure their runs are named by.
    figure4 = {"vanilla-20": (1.05, 1.064, 1.051), "whitespace-12": (1.10, 1.111, 1.104)}
    figure4["whitespace-20"] = (1.04, 1.053, 1.042)
    deep = [seeded(row(name, "dynamic_pooling_figure4"), *of) for name, of in figure4.items()]
    found = bits_per_character([seeded(row("vanilla"), 1.15, 1.162, 1.153), *deep]).set_index("row")
    assert found["fewer than all"][["whitespace-12", "whitespace-20"]].tolist() == ["*", "*"]
