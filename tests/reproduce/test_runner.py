import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from reproduce_meeting import rendezvous

from pyramidions.reproduce import runner as module
from pyramidions.reproduce.catalogue import read_catalogue
from pyramidions.reproduce.jobs import jobs_for
from pyramidions.reproduce.plan import Machines, Planner, Step
from pyramidions.reproduce.run import StepError
from pyramidions.reproduce.runner import Runner
from pyramidions.reproduce.scale import SCALES

CONFIGS = Path(__file__).parents[2] / "configs"


class World:
    """What machines do, written down instead of done; some steps of some rows fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: set[tuple[str, str]]) -> None:
        self.led: list[tuple[str, str]] = []
        self.helped: list[str] = []
        self.fails = fails
        monkeypatch.setattr(module, "run_step", self.run_step)
        monkeypatch.setattr(module, "run_commands", self.run_commands)
        monkeypatch.setattr(module, "write_result", lambda *_: None)
        monkeypatch.setattr(Runner, "_hardware", {"device": "a GPU", "threads": 1})
        # Hydra composes for one thread at a time.
        settings = {"dataset": {"batch_size": 4, "batch_size_valid": 8}, "common": {"seed": 1}}
        monkeypatch.setattr(Runner, "_settings", lambda self, job: settings)
        monkeypatch.setattr(Runner, "_made_from", lambda self, job, step: {})

    def run_step(self, step: Step, descriptor: int, say: Any, about: dict[str, Any]) -> float:
        row = step.folder.name.partition("_")[0]
        self.led.append((row, step.name))
        if (row, step.name) in self.fails:
            raise StepError("it fails.")
        step.mark.write_text(json.dumps(about))
        return 1.0

    def run_commands(self, step: Step, log: Path, descriptor: None, say: Any) -> None:
        self.helped.append(log.parent.name.partition("_")[0] + "/" + log.name)

    def trained(self) -> list[str]:
        return [row for row, step in self.led if step == "train"]


def machine(
    out: Path, rank: int = 0, nodes: int = 1, meeting: str | None = None, gpus: int = 8, said: list[str] | None = None
) -> Runner:
    corpus = out / "arxiv-corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    (corpus / "manifest.json").touch()
    machines = Machines(gpus, nodes, rank, meeting)
    planner = Planner(out, CONFIGS, SCALES["paper"], machines, Path("/plugin"), {"arxiv": corpus})
    return Runner(planner, CONFIGS, lambda line: None if said is None else said.append(line))


def jobs(*rows: str) -> list[Any]:
    return jobs_for(read_catalogue(CONFIGS), ["table2"], rows)


def test_machines_take_the_same_trainings_whatever_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world, meeting = World(monkeypatch, {("04", "time"), ("12", "train")}), rendezvous()
    runners = [machine(tmp_path, rank, 2, meeting) for rank in (0, 1)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda runner: runner.run(jobs("4", "12", "15"), []), runners)
    assert world.trained() == ["04", "12", "15"]
    assert world.helped == ["04/train.1.log", "12/train.1.log", "15/train.1.log"]
    assert first == ["arxiv/table2/04_blockwise_2k", "arxiv/table2/12_efficient_512"] and second == []


def test_power_needs_a_trained_model_and_not_a_timed_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = World(monkeypatch, {("04", "time"), ("05", "train")})
    failed = machine(tmp_path).run(jobs("4", "15", "5", "16"), [])
    assert world.trained() == ["04", "05", "15"]
    assert failed == [f"arxiv/table2/{name}" for name in ("04_blockwise_2k", "05_blockwise_8k", "16_power_8k_2k_512")]


def test_a_corpus_that_cannot_be_prepared_fails_its_rows_and_no_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world, runner = World(monkeypatch, {("arxiv.prepare", "prepare")}), machine(tmp_path)
    runner.planner.corpora["arxiv"] = None
    rows = [*jobs("1"), *jobs_for(read_catalogue(CONFIGS), ["table10"], ["2"])]
    assert runner.run(rows, []) == ["arxiv/table2/01_vanilla_512"]
    assert world.led == [("arxiv.prepare", "prepare"), ("02", "time")]


@pytest.mark.parametrize(("gpus", "told"), [(8, False), (3, True)])
def test_where_an_update_has_other_than_256_documents_it_is_said(
    gpus: int, told: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    World(monkeypatch, set())
    said: list[str] = []
    machine(tmp_path, gpus=gpus, said=said).run(jobs("1"), [])
    assert ("  an update has 252 documents: batches of 4 on each GPU do not make 256" in said) is told
