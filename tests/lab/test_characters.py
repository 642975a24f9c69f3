"""Language models of characters as rows of tables: commands, results, and how sure their order is."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import ttest_rel

from lab.catalogue import PaperRow, jobs_for, read_catalogue
from lab.plan import Machines, Planner
from lab.results import Language, Result
from lab.run import bits_of
from lab.scale import SCALES
from lab.seeds import SeededRow, bits_per_character
from pyramidions.base.errors import UserError
from pyramidions.runs.steps import StepError

CONFIGS = Path(__file__).parents[2] / "configs"
CATALOGUE = read_catalogue(CONFIGS)


def row(name: str, table: str = "dynamic_pooling_figure3") -> PaperRow:
    return next(row for row in CATALOGUE if (row.table, row.row) == (table, name))


def planner(given: Path | None = None, corpus: str = "text8") -> Planner:
    return Planner(Path("/out"), CONFIGS, SCALES["paper"], Machines(8), Path("/plugin"), {corpus: given}, seed=2)


def test_rows_are_trained_and_tested_for_each_seed() -> None:
    jobs = jobs_for(CATALOGUE, ["dynamic_pooling_figure3"], ["vanilla", "unigram_500"], [1, 2])
    assert [job.name for job in jobs] == [
        f"{name}, seed {seed}"
        for seed in (1, 2)
        for name in ("text8/dynamic_pooling/vanilla", "text8-500/dynamic_pooling/unigram")
    ]
    assert all(job.wanted == {"train", "test"} for job in jobs)


def test_figures_share_models_of_twelve_layers() -> None:
    jobs = jobs_for(CATALOGUE, ["dynamic_pooling_figure3", "dynamic_pooling_figure4"])
    assert len(jobs) == len({job.name for job in jobs}) == 15 + 16 - 3


def test_a_model_is_trained_on_one_gpu_and_tested_by_last_quarters() -> None:
    (train,), (test,) = (
        step.commands for step in (planner().train(row("gumbel_25"), 4), planner().test(row("gumbel_25")))
    )
    words = [*map(str, train.words)]
    assert words[words.index("--config-name") + 1 :][:2] == ["dynamic_pooling", "+dynamic_pooling=gumbel_25"]
    assert {"distributed_training.distributed_world_size=1", "common.seed=2"} <= set(words) and train.gpus == (0,)
    assert "--tokens-per-sample 2048 --context-window 1536 --batch-size 16" in " ".join(map(str, test.words))


def test_a_corpus_is_prepared_with_its_pieces(tmp_path: Path) -> None:
    def words(given: Path | None, corpus: str) -> list[str]:
        step = planner(given, corpus).prepare(corpus)
        assert step is not None
        return [str(word) for word in step.commands[0].words[2:]]

    out = ["--out", "/out/data/wiki40b-fi-200"]
    assert words(None, "wiki40b-fi-200") == ["wiki40b", "--characters", "fi", *out, "--pieces", "200"]
    (tmp_path / "train.jsonl.xz").touch()
    texts = [str(tmp_path / "train.jsonl.xz"), "--source-field", "article", "--characters", "en"]
    assert words(tmp_path, "text8") == [*texts, "--out", "/out/data/text8"]
    # All rows would have the same pieces.
    (tmp_path / "manifest.json").touch()
    with pytest.raises(UserError, match=r"^--data must hold a prepared folder text8-500, or train\.jsonl, but is "):
        planner(tmp_path, "text8-500").prepare("text8-500")


def test_bits_come_from_the_log_of_the_test_and_segments_from_that_of_the_training(tmp_path: Path) -> None:
    test, train, made = (tmp_path / name for name in ("test.log", "train.log", "test.json"))
    train.write_text('{"valid_shortening_factor": "3.1"}\n{"valid_shortening_factor": "4.6"}\n')
    test.write_text("nothing")
    with pytest.raises(StepError, match="did not write bits per character"):
        bits_of(test, train, made)
    test.write_text("Loss (base 2): 1.1361, Perplexity: 2.20\n")
    bits_of(test, train, made)
    assert json.loads(made.read_text()) == {"bpc": 1.1361, "shortening_factor": 4.6}


def seeded(name: str, *bits: float) -> SeededRow:
    results = [Result.model_construct(language=Language(bpc=value)) for value in bits]
    return SeededRow(row(name), dict(enumerate(results, 1)), {})


def test_a_star_marks_what_is_below_vanilla_and_fixed_by_a_paired_t_test() -> None:
    vanilla, fixed = (1.143, 1.145, 1.141), (1.149, 1.150, 1.150)
    better, unsure = (1.133, 1.136, 1.131), (1.10, 1.15, 1.14)
    found = bits_per_character(
        [
            seeded("vanilla", *vanilla),
            seeded("fixed_2", *fixed),
            seeded("unigram_500", *better),
            seeded("gumbel_20", *unsure),
        ]
    ).set_index("row")
    p = ttest_rel(better, vanilla).pvalue
    assert p < 0.05 and found.loc["unigram_500", "fewer than vanilla, p"] == f"{p:.3f}"
    assert found["fewer than all"].tolist() == ["", "", "*", ""]
    assert found.loc["vanilla", "bits per character"] == "1.143"
    assert found.loc["fixed_2", "fewer than vanilla, p"] == ""


def test_models_are_compared_with_those_of_their_depth_whichever_figure_their_runs_are_named_by() -> None:
    rows = [
        seeded("vanilla", 1.15, 1.162, 1.153),
        replace(seeded("vanilla", 1.05, 1.064, 1.051), row=row("vanilla-20", "dynamic_pooling_figure4")),
        replace(seeded("vanilla", 1.10, 1.111, 1.104), row=row("whitespace-12", "dynamic_pooling_figure4")),
        replace(seeded("vanilla", 1.04, 1.053, 1.042), row=row("whitespace-20", "dynamic_pooling_figure4")),
    ]
    found = bits_per_character(rows).set_index("row")["fewer than all"]
    assert found[["whitespace-12", "whitespace-20"]].tolist() == ["*", "*"]
