"""Systems of others in the catalogue: their figures as printed, and how ours are run."""

from pathlib import Path

import pytest

from lab.catalogue import LECTURE_TABLES, PaperRow, jobs_for, read_catalogue
from lab.plan import Machines, Planner
from lab.runner import Runner
from lab.scale import SCALES
from pyramidions.base.errors import UserError

CONFIGS = Path(__file__).parents[2] / "configs"
CATALOGUE = {(row.table, row.row): row for row in read_catalogue(CONFIGS) if row.table in LECTURE_TABLES}


def rouge(table: str, row: str) -> tuple[float, ...]:
    return tuple(CATALOGUE[f"lecture_{table}", row].paper[name] for name in ("r1", "r2", "rl"))


def test_figures_are_those_of_the_papers() -> None:
    assert rouge("govreport", "full") == (52.83, 20.50, 50.14)
    assert rouge("govreport", "sinkhorn_hepos") == (56.86, 22.62, 53.82)
    assert rouge("pubmed", "lsh_hepos") == (48.12, 21.06, 42.72)
    assert rouge("arxiv", "led") == (46.63, 19.62, 41.83)
    assert rouge("arxiv", "discourse_aware") == (35.80, 11.05, 31.80)


def test_two_tables_print_two_lengths_of_bigbird_and_both_are_kept() -> None:
    lengths = {
        name: CATALOGUE[name].encoder_lengths for name in CATALOGUE if "bigbird" in name[1] and CATALOGUE[name].paper
    }
    assert lengths == {("lecture_pubmed", "bigbird"): "3072", ("lecture_arxiv", "bigbird_4k"): "4096"}


def test_every_system_with_published_figures_says_what_it_starts_from_or_is_one_of_four_that_do_not() -> None:
    silent = {row.row for row in CATALOGUE.values() if row.paper and not row.pretrained}
    assert silent == {"tlm", "seal", "discourse_aware", "extr_abst_tlm", "dancer"}
    assert CATALOGUE["lecture_pubmed", "dancer"].pretrained == "PEGASUS-large"
    assert all(row.starts_from == "" for row in CATALOGUE.values())


def test_rows_with_a_config_are_trained_and_scored_and_not_timed() -> None:
    jobs = jobs_for(list(CATALOGUE.values()), ["lecture_govreport", "lecture_pubmed"], ["led", "lsh_window"])
    assert [(job.name, job.wanted) for job in jobs] == [
        (f"{data}/lecture/{row}", {"train", "generate", "score"})
        for data in ("govreport", "pubmed")
        for row in sorted(("led", "lsh_window"), key=[row.row for row in CATALOGUE.values()].index)
    ]


def test_a_hierarchy_reads_a_corpus_of_its_own_that_has_sentence_markers(tmp_path: Path) -> None:
    here = runner(tmp_path)
    jobs = jobs_for(list(CATALOGUE.values()), ["lecture_govreport"], ["led", "hat"])
    assert set(here.corpora(jobs)) == {"govreport", "govreport-with-markers"}
    for corpus, marked in (("govreport", False), ("govreport-with-markers", True)):
        step = here.planner.prepare(corpus)
        assert step is not None and ("--sentence-markers" in step.commands[0].words) is marked
        assert step.made == tmp_path / "data" / corpus / "manifest.json"
    row = CATALOGUE["lecture_govreport", "hat"]
    assert f"task.data={tmp_path}/data/govreport-with-markers" in here.planner.train(row, 4).commands[0].words


def test_a_row_that_is_only_published_cannot_be_run() -> None:
    with pytest.raises(UserError, match="^--rows must be of full, .* but one is 'pegasus'.$"):
        jobs_for(list(CATALOGUE.values()), ["lecture_pubmed"], ["pegasus"])


def runner(out: Path) -> Runner:
    planner = Planner(out, CONFIGS, SCALES["paper"], Machines(1), Path("/plugin"), {})
    return Runner(planner, CONFIGS, print)


def test_a_system_is_trained_with_the_settings_of_the_corpus(tmp_path: Path) -> None:
    row: PaperRow = CATALOGUE["lecture_govreport", "led"]
    words = runner(tmp_path).planner.train(row, 4).commands[0].words
    assert words[words.index("base") + 1 :][:2] == ("+corpus=govreport", "+lecture=led")


def test_of_two_corpora_the_lengths_of_summaries_differ_and_the_schedule_does_not(tmp_path: Path) -> None:
    jobs = jobs_for(list(CATALOGUE.values()), ["lecture_govreport", "lecture_pubmed"], ["led"])
    settings = [runner(tmp_path)._settings(job) for job in jobs]
    lengths = [(run["model"]["decoding_min_length"], run["model"]["decoding_max_length"]) for run in settings]
    assert lengths == [(0, 1023), (100, 800)]
    for run in settings:
        assert (run["optimization"]["max_update"], run["lr_scheduler"]["warmup_updates"]) == (20000, 1000)
        model = run["model"]
        assert (model["decoding_beam"], model["decoding_length_penalty"], model["decoding_no_repeat_ngram"]) == (
            4,
            2.0,
            3,
        )
