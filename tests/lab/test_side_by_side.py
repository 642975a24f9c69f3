"""Rows and seeds that run at the same time: who waits for whom, and what is told of those that fail."""

import threading
from pathlib import Path
from typing import Any

import pytest

from lab import runner as module
from lab.catalogue import jobs_for, read_catalogue
from lab.plan import Machines, Planner
from lab.run import RowStep
from lab.runner import Runner
from lab.scale import SCALES
from pyramidions.runs.steps import StepError

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Runs nothing; a corpus counts as prepared."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "manifest.json").touch()
    monkeypatch.setattr(module, "write_result", lambda *_: None)
    settings = {"dataset": {"batch_size": 8, "batch_size_valid": 8}, "common": {"seed": 1}}
    monkeypatch.setattr(Runner, "_settings", lambda self, job: settings)
    monkeypatch.setattr(Runner, "_made_from", lambda self, job, step: {})
    corpora = {"arxiv": tmp_path / "corpus"}
    planner = Planner(tmp_path, CONFIGS, SCALES["tiny"], Machines(0), Path("/plugin"), corpora)
    return Runner(planner, CONFIGS, print, stop=lambda: None)


def jobs(rows: list[str], seeds: list[int]) -> list[Any]:
    return jobs_for(read_catalogue(CONFIGS), ["table2"], rows, seeds)


def marked(step: RowStep) -> float:
    step.folder.mkdir(parents=True, exist_ok=True)
    step.state.finish(step)
    return 1.0


def test_all_rows_and_seeds_run_at_once(here: Runner) -> None:
    # None goes on before all four have come.
    meeting = threading.Barrier(4, timeout=20)

    def run(step: RowStep, say: Any, *, waits: bool = False) -> float:
        if step.name == "train":
            meeting.wait()
        return marked(step)

    here.run_one = run
    assert here.run(jobs(["4", "6"], [1, 2]), []) == []


def test_a_row_waits_for_the_one_of_its_seed_that_it_starts_from(here: Runner) -> None:
    trained = []

    def run(step: RowStep, say: Any, *, waits: bool = False) -> float:
        if step.name == "train":
            trained.append((step.folder.parent.name[:2], step.folder.name))
        return marked(step)

    here.run_one = run
    assert here.run(jobs(["15"], [1, 2]), []) == []
    for seed in ("seed-1", "seed-2"):
        assert trained.index(("04", seed)) < trained.index(("15", seed))


def test_whatever_one_raises_the_others_go_on_and_all_are_told(here: Runner) -> None:
    said: list[str] = []

    def run(step: RowStep, say: Any, *, waits: bool = False) -> float:
        row = step.folder.parent.name[:2]
        if row == "04":
            raise StepError("it fails.")
        if row == "05":
            raise ZeroDivisionError("a bug")
        say("    half of it")
        return marked(step)

    here.run_one, here.say = run, said.append
    failed = here.run(jobs(["4", "5", "6"], [1]), [])
    assert failed == ["arxiv/table2/04_blockwise_2k, seed 1", "arxiv/table2/05_blockwise_8k, seed 1"]
    assert "arxiv/table2/04_blockwise_2k, seed 1: FAILED: it fails." in said
    assert any("05_blockwise_8k, seed 1: FAILED: Traceback" in line and "a bug" in line for line in said)
    assert "arxiv/table2/06_transpooler_2k_512, seed 1: half of it" in said
    assert "arxiv/table2/06_transpooler_2k_512, seed 1: finished" in said


def test_an_interrupt_stops_what_runs(here: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()

    def run(step: RowStep, say: Any, *, waits: bool = False) -> float:
        assert stopped.wait(20)
        raise StepError("stopped.")

    def interrupted(futures: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lab.runner.wait", interrupted)
    here.run_one, here.stop = run, stopped.set
    with pytest.raises(KeyboardInterrupt):
        here.run(jobs(["4", "6"], [1]), [])
    assert stopped.is_set()
