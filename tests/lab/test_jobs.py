from pathlib import Path

import pytest

from lab.catalogue import OF_SUMMARIES, jobs_for, read_catalogue
from pyramidions.base.errors import UserError

CONFIGS = Path(__file__).parents[2] / "configs"
CATALOGUE = read_catalogue(CONFIGS)
ALL = {"train", "generate", "score", "time"}


def test_tables_2_7_and_8_have_28_models() -> None:
    jobs = jobs_for(CATALOGUE, ["table2", "table7", "table8"])
    assert len(jobs) == len({job.name for job in jobs}) == 28
    assert all(job.wanted == ALL for job in jobs)


def test_the_model_that_another_starts_from_comes_first_and_is_only_trained() -> None:
    jobs = jobs_for(CATALOGUE, ["table2"], ["16", "1"])
    assert [(job.row.row, job.wanted) for job in jobs] == [("1", ALL), ("5", {"train"}), ("16", ALL)]


def test_timing_power_needs_no_trained_model() -> None:
    assert [(job.row.row, job.wanted) for job in jobs_for(CATALOGUE, ["table10"], ["16"])] == [("16", {"time"})]


def test_a_config_of_two_tables_runs_once_with_the_steps_of_both() -> None:
    (job,) = jobs_for(CATALOGUE, ["table2", "figure4"], ["3", "vanilla-2"])
    assert job.wanted == ALL | {"time-training"}


def test_table_3_trains_on_both_corpora() -> None:
    assert [job.name for job in jobs_for(CATALOGUE, ["table3"])] == [
        *("arxiv/table3/blockwise", "pubmed/table3/blockwise"),
        *("arxiv/table3/deep_pyramidion", "pubmed/table3/deep_pyramidion"),
    ]


def test_a_row_that_no_table_has_is_named() -> None:
    with pytest.raises(UserError, match="--rows must be of linear, nonlinear, .* but one is '99'."):
        jobs_for(CATALOGUE, ["table4"], ["99"])


def test_pretraining_comes_before_what_starts_from_it() -> None:
    jobs = jobs_for(CATALOGUE, ["sparse_table5"], ["terraformer"])
    assert [(job.name, job.wanted) for job in jobs] == [
        ("arxiv/sparse/terraformer_pretraining", {"train"}),
        ("arxiv/sparse/terraformer", {"train", "generate", "score"}),
    ]
    assert jobs[0].row.overrides == ("+sparse=terraformer_pretraining", *OF_SUMMARIES)
    assert jobs[1].row.overrides == ("+sparse=terraformer",)
