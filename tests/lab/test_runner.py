from pathlib import Path
from typing import Any

import pytest
import torch

from lab import runner as module
from lab.catalogue import jobs_for, read_catalogue
from lab.plan import Machines, Planner
from lab.run import RowStep
from lab.runner import Runner, training
from lab.scale import SCALES
from pyramidions.runs.steps import StepError

CONFIGS = Path(__file__).parents[2] / "configs"


class World:
    """What is run, written down instead of done; some steps of some rows fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: set[tuple[str, str]]) -> None:
        self.ran: list[tuple[str, str]] = []
        self.fails = fails
        monkeypatch.setattr(module, "write_result", lambda *_: None)
        settings = {"dataset": {"batch_size": 4, "batch_size_valid": 8}, "common": {"seed": 1}}
        monkeypatch.setattr(Runner, "_settings", lambda self, job: settings)
        monkeypatch.setattr(Runner, "_made_from", lambda self, job, step: {})

    def run(self, step: RowStep, say: Any, *, waits: bool = False) -> float:
        row = step.folder.name.partition("_")[0]
        self.ran.append((row, step.name))
        if (row, step.name) in self.fails:
            raise StepError("it fails.")
        step.folder.mkdir(parents=True, exist_ok=True)
        step.state.finish(step)
        return 1.0

    def trained(self) -> list[str]:
        return [row for row, step in self.ran if step == "train"]


def runner(out: Path, world: World, gpus: int = 8, said: list[str] | None = None) -> Runner:
    corpus = out / "arxiv-corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    (corpus / "manifest.json").touch()
    planner = Planner(out, CONFIGS, SCALES["paper"], Machines(gpus), Path("/plugin"), {"arxiv": corpus})
    return Runner(planner, CONFIGS, lambda line: None if said is None else said.append(line), world.run)


def jobs(*rows: str) -> list[Any]:
    return jobs_for(read_catalogue(CONFIGS), ["table2"], rows)


def test_power_needs_a_trained_model_and_not_a_timed_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = World(monkeypatch, {("04", "time"), ("05", "train")})
    failed = runner(tmp_path, world).run(jobs("4", "15", "5", "16"), [])
    assert world.trained() == ["04", "05", "15"]
    assert failed == [f"arxiv/table2/{name}" for name in ("04_blockwise_2k", "05_blockwise_8k", "16_power_8k_2k_512")]


def test_a_corpus_that_cannot_be_prepared_fails_its_rows_and_no_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world = World(monkeypatch, {("arxiv.prepare", "prepare")})
    here = runner(tmp_path, world)
    here.planner.corpora["arxiv"] = None
    rows = [*jobs("1"), *jobs_for(read_catalogue(CONFIGS), ["table10"], ["2"])]
    assert here.run(rows, []) == ["arxiv/table2/01_vanilla_512"]
    assert world.ran == [("arxiv.prepare", "prepare"), ("02", "time")]


@pytest.mark.parametrize(("gpus", "told"), [(8, False), (3, True)])
def test_where_an_update_has_other_than_256_documents_it_is_said(
    gpus: int, told: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[str] = []
    runner(tmp_path, World(monkeypatch, set()), gpus, said).run(jobs("1"), [])
    assert ("  an update has 252 documents: batches of 4 on each GPU do not make 256" in said) is told


def test_other_metrics_score_a_row_again_and_train_it_no_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Scored(World):
        def run(self, step: RowStep, say: Any, *, waits: bool = False) -> float:
            taken = super().run(step, say, waits=waits)
            step.made.parent.mkdir(parents=True, exist_ok=True)
            step.made.touch()
            return taken

    def ran(*metrics: str) -> list[str]:
        world = Scored(monkeypatch, set())
        here = runner(tmp_path, world)
        made_from = {} if metrics == ("rouge",) else {"metrics": ",".join(metrics)}
        monkeypatch.setattr(Runner, "_made_from", lambda self, job, step: made_from if step.name == "score" else {})
        assert here.run(jobs("4"), []) == []
        return [step for _, step in world.ran]

    assert {"train", "generate", "score"} <= set(ran("rouge"))
    assert ran("rouge") == []
    assert ran("rouge", "meteor") == ["score"]
    assert ran("rouge", "meteor") == []


def test_a_damaged_checkpoint_tells_nothing_of_its_training(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_last.pt"
    torch.save({"value": torch.arange(64.0)}, path)
    content = bytearray(path.read_bytes())
    content[content.index(torch.arange(64.0).numpy().tobytes()) + 100] ^= 1
    path.write_bytes(content)
    assert training(path) is None
    path.write_bytes(content[:-30])
    assert training(path) is None


def test_what_a_run_wrote_tells_of_its_training(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_last.pt"
    iterator = {"epoch": 3, "iterations_in_epoch": 0}
    state = {
        "optimizer_history": [{"num_updates": 12}],
        "extra_state": {"previous_training_time": 1.5, "train_iterator": iterator, "val_loss": 2.5, "best": 2.25},
        "cfg": {"checkpoint": {"best_checkpoint_metric": "loss"}},
    }
    torch.save(state, path)
    best = {"metric": "loss", "value": 2.25}
    assert training(path) == {"seconds": 1.5, "updates": 12, "epochs": 2, "best": best}
    del state["extra_state"]["best"]
    iterator["iterations_in_epoch"] = 4
    torch.save(state, path)
    assert training(path) == {"seconds": 1.5, "updates": 12, "epochs": 3, "best": None}
    torch.save({"model": {}}, path)
    assert training(path) is None
