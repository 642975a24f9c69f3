"""Steps that run here, side by side or as jobs of a cluster: what is done, waits, fails, and is told."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from refusals import refused
from submitit.slurm.slurm import SlurmInfoWatcher

from lab import run as run_module
from lab import runner as module
from lab.catalogue import jobs_for, read_catalogue
from lab.plan import Machines, Planner
from lab.run import RowStep, _where, bits_of, joined, locked, memory_of, run_here, training_memory
from lab.runner import Runner, training
from lab.scale import SCALES
from lab.slurm import Cluster
from pyramidions.runs.steps import Command, StepError

pytestmark = pytest.mark.nightly
CONFIGS = Path(__file__).parents[2] / "configs"
WAITS = "import os, time; open({!r}, 'w').write(str(os.getpid())); time.sleep(60)"


@pytest.fixture(autouse=True)
def hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started to ask for the hardware."""
    monkeypatch.setattr(run_module, "_hardware", lambda device: {"device": device, "threads": 1})


def step(folder: Path, code: str = "pass", **about: Any) -> RowStep:
    (folder / "made").touch()
    command = Command((sys.executable, "-c", code))
    return RowStep("work", (command,), (folder / "made",), folder / "work.log", **about)


def run(work: RowStep) -> float | None:
    return run_here(work, print)


def test_what_is_done_is_not_done_again_and_what_fails_is_not_done(tmp_path: Path) -> None:
    work = step(tmp_path, "print('hello')")
    assert run(work) is not None
    assert run(work) is None
    assert (tmp_path / "work.log").read_text().count("\nhello\n") == 1
    facts = work.state.facts["done"]["work"]
    assert facts["seconds"] >= 0 and facts["commit"] and facts["versions"]["python"]
    assert (facts["hardware"]["threads"], facts["hardware"]["nodes"], facts["hardware"]["gpus"]) == (1, 1, 0)
    # What another config made is not taken.
    with refused("work", StepError):
        run(replace(work, made_from={"config": "another"}))
    work.state.forget("work")
    with refused("no such thing", StepError):
        run(step(tmp_path, "raise SystemExit('no such thing')"))
    assert not work.is_done


def test_parts_are_joined_in_order(tmp_path: Path) -> None:
    parts = (tmp_path / "one", tmp_path / "two")
    for part in parts:
        part.write_text(f"{part.name}\n")
    joined(parts, tmp_path / "made")
    assert (tmp_path / "made").read_text() == "one\ntwo\n"
    with refused("/nowhere/part", StepError):
        joined([Path("/nowhere/part")], tmp_path / "made")


def test_a_folder_is_held_as_long_as_a_process_works_in_it(tmp_path: Path) -> None:
    work = step(tmp_path, "import time; time.sleep(1.5)")
    thread = threading.Thread(target=run, args=(work,))
    thread.start()
    while not (tmp_path / "work.log").exists():
        pass
    time.sleep(0.3)
    with refused(str(tmp_path), StepError), locked(tmp_path):
        pass
    said: list[str] = []
    with locked(tmp_path, wait=said.append):
        assert not thread.is_alive() or work.is_done
    assert len(said) == 1 and str(tmp_path) in said[0]
    thread.join()


def test_logs_tell_of_the_training_and_of_its_bits(tmp_path: Path) -> None:
    test, train, made = (tmp_path / name for name in ("test.log", "train.log", "test.json"))
    losses = ('"num_updates": "10", "loss": "9.8"', '"num_updates": "20", "loss": "8.965"')
    train.write_text("".join(f'{{"epoch": 2, {loss}}}\n' for loss in losses) + "validating\n")
    assert _where(train) == "20 updates, loss 8.96"
    train.write_text("one\ntwo\n")
    assert _where(train) == "two"
    train.write_text('{"valid_shortening_factor": "3.1"}\n{"valid_shortening_factor": "4.6"}\n')
    test.write_text("nothing")
    with refused(str(test), StepError):
        bits_of(test, train, made)
    test.write_text("Loss (base 2): 1.1361, Perplexity: 2.20\n")
    bits_of(test, train, made)
    assert json.loads(made.read_text()) == {"bpc": 1.1361, "shortening_factor": 4.6}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak of a process")
def test_a_training_on_the_cpu_notes_its_peak_and_no_other_step_does(tmp_path: Path) -> None:
    assert memory_of(os.getpid()) > 2**20 and memory_of(2**30) == 0
    for trains in (True, False):
        (folder := tmp_path / str(trains)).mkdir()
        work = step(folder, "import time; held = bytearray(200 * 2**20); del held; time.sleep(1)", trains=trains)
        run(work)
        memory = work.state.facts["done"]["work"].get("memory")
        assert (memory is not None and memory["of"] == "process" and memory["bytes"] > 200 * 2**20) is trains


def test_the_peak_is_the_highest_of_all_runs_and_on_a_gpu_what_was_allocated(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    told = "".join(f"$ train\n# peak memory of the process: {peak} B\n" for peak in (300, 200))
    log.write_text(told)
    assert training_memory(log, 0) == {"bytes": 300, "of": "process"} and training_memory(log, 8) is None
    log.write_text(
        f'rank 0: total memory = 80.000 GB ; H100\n"gb_free": "60.5", "wall": "1"\n"gb_free": "64.0"\n{told}'
    )
    assert training_memory(log, 8) == {"bytes": round(19.5 * 2**30), "of": "gpu"}


def test_a_checkpoint_tells_of_its_training_unless_it_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint_last.pt"
    iterator, values = {"epoch": 3, "iterations_in_epoch": 0}, torch.arange(64.0)
    state = {
        "optimizer_history": [{"num_updates": 12}],
        "extra_state": {"previous_training_time": 1.5, "train_iterator": iterator, "val_loss": 2.5, "best": 2.25},
        "cfg": {"checkpoint": {"best_checkpoint_metric": "loss"}},
        "model": {"value": values},
    }
    torch.save(state, path)
    best = {"metric": "loss", "value": 2.25}
    assert training(path) == {"seconds": 1.5, "updates": 12, "epochs": 2, "best": best}
    content = bytearray(path.read_bytes())
    content[content.index(values.numpy().tobytes()) + 100] ^= 1
    for damaged in (content, content[:-30]):
        path.write_bytes(damaged)
        assert training(path) is None
    del state["extra_state"]["best"]  # type: ignore[attr-defined]
    iterator["iterations_in_epoch"] = 4
    torch.save(state, path)
    assert training(path) == {"seconds": 1.5, "updates": 12, "epochs": 3, "best": None}
    torch.save({"model": {}}, path)
    assert training(path) is None


# ------------------------------------------------------------------------------------------- whole rows, side by side


class World:
    """Writes down what is to be run, instead of running it; what happens in a step may be given."""

    def __init__(self, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (out / "corpus").mkdir(exist_ok=True)
        (out / "corpus" / "manifest.json").touch()
        monkeypatch.setattr(module, "write_result", lambda *_: None)
        settings = {"dataset": {"batch_size": 4, "batch_size_valid": 8}, "common": {"seed": 1}}
        monkeypatch.setattr(Runner, "_settings", lambda self, job: settings)
        made_from = lambda runner, job, step: self.made_from if step.name == "score" else {}  # noqa: E731
        monkeypatch.setattr(Runner, "_made_from", made_from)
        self.made_from: dict[str, str] = {}
        self.ran: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.happens: Callable[[str, str], object] = lambda row, step: None
        corpora: dict[str, Path | None] = {"arxiv": out / "corpus"}
        planner = Planner(out, CONFIGS, SCALES["paper"], Machines(0), Path("/plugin"), corpora)
        self.runner = Runner(planner, CONFIGS, self.said.append, self.step)
        self.stop: Callable[[], object] = lambda: None

    def step(self, step: RowStep, say: Any, *, waits: bool = False) -> float:
        folder = step.folder
        row = f"{folder.parent.name[:2]} {folder.name}" if folder.name.startswith("seed") else folder.name[:2]
        self.ran.append((row, step.name))
        self.happens(row, step.name)
        step.made.parent.mkdir(parents=True, exist_ok=True)
        step.made.touch()
        step.state.finish(step)
        return 1.0

    def go(self, *rows: str, seeds: tuple[int, ...] = (), table: str = "table2") -> list[str]:
        # Seeds run side by side.
        self.runner.stop = self.stop if seeds else None
        return self.runner.run(jobs_for(read_catalogue(CONFIGS), [table], rows, seeds), [])

    def trained(self) -> list[str]:
        return [row for row, step in self.ran if step == "train"]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def fails(*steps: tuple[str, str]) -> Callable[[str, str], None]:
    def happens(row: str, step: str) -> None:
        if (row, step) in steps:
            raise StepError("it fails.")

    return happens


def test_power_needs_a_trained_model_and_not_a_timed_one(world: World) -> None:
    world.happens = fails(("04", "time"), ("05", "train"))
    world.runner.planner = replace(world.runner.planner, machines=Machines(3))
    failed = world.go("4", "15", "5", "16")
    assert world.trained() == ["04", "05", "15"]
    assert failed == [f"arxiv/table2/{name}" for name in ("04_blockwise_2k", "05_blockwise_8k", "16_power_8k_2k_512")]
    assert "  an update has 252 documents: batches of 4 on each GPU do not make 256" in world.said


def test_a_corpus_that_cannot_be_prepared_fails_its_rows(world: World) -> None:
    world.happens = fails(("ar", "prepare"))
    world.runner.planner.corpora["arxiv"] = None
    assert world.go("1") == ["arxiv/table2/01_vanilla_512"] and world.ran == [("ar", "prepare")]


def test_other_metrics_score_a_row_again_and_train_it_no_more(world: World) -> None:
    world.go("4")
    assert {"train", "generate", "score"} <= {step for _, step in world.ran}
    world.ran.clear()
    world.go("4")
    assert world.ran == []
    world.made_from = {"metrics": "rouge,meteor"}
    for _ in range(2):
        world.go("4")
    assert world.ran == [("04", "score")]


def test_all_rows_and_seeds_run_at_once_but_for_what_starts_from_another(world: World) -> None:
    # None goes on before all four have come.
    meeting = threading.Barrier(4, timeout=20)
    world.happens = lambda row, step: step == "train" and row[:2] != "15" and meeting.wait()
    assert world.go("4", "6", "15", seeds=(1, 2)) == []
    for seed in ("seed-1", "seed-2"):
        assert world.trained().index(f"04 {seed}") < world.trained().index(f"15 {seed}")


def test_whatever_one_raises_the_others_go_on_and_all_are_told(world: World) -> None:
    def happens(row: str, step: str) -> None:
        if row.startswith("04"):
            raise StepError("it fails.")
        if row.startswith("05"):
            raise ZeroDivisionError("a bug")

    world.happens = happens
    failed = world.go("4", "5", "6", seeds=(1,))
    assert failed == ["arxiv/table2/04_blockwise_2k, seed 1", "arxiv/table2/05_blockwise_8k, seed 1"]
    assert "arxiv/table2/04_blockwise_2k, seed 1: FAILED: it fails." in world.said
    assert any("05_blockwise_8k, seed 1: FAILED: Traceback" in line and "a bug" in line for line in world.said)
    assert "arxiv/table2/06_transpooler_2k_512, seed 1: finished" in world.said


def test_an_interrupt_stops_what_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()

    def interrupted(futures: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lab.runner.wait", interrupted)
    world.happens, world.stop = lambda row, step: stopped.wait(20), stopped.set
    with pytest.raises(KeyboardInterrupt):
        world.go("4", "6", seeds=(1,))
    assert stopped.is_set()


# ------------------------------------------------------------------------------------------------- jobs of a cluster

TELL = "import os; print(*(os.environ.get(f'PET_{name}') for name in ('NODE_RANK', 'MASTER_ADDR', 'MASTER_PORT')))"
# Programs of a cluster of two machines: a script runs at once, and srun starts a task for each machine.
PROGRAMS = {
    "sbatch": """
        cp "$1" "$CLUSTER/script"
        export SLURM_JOB_ID=$JOB SLURM_NTASKS=2 SLURM_JOB_NUM_NODES=2 SLURM_JOB_NODELIST=node[1-2]
        bash "$1" >/dev/null 2>&1 &
        echo Submitted batch job $JOB""",
    "srun": """
        while [ "${1%%python*}" = "$1" ]; do shift; done
        for rank in 0 1; do SLURM_PROCID=$rank SLURM_NODEID=$rank "$@" & done
        wait""",
    "sacct": """
        [ -e "$CLUSTER/ended" ] && state=TIMEOUT || state=RUNNING
        printf 'JobID|State\\n%s|%s\\n' $JOB $state""",
    "scancel": "exit 0",
}
JOBS = count(7)  # submitit remembers those that have ended


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with programs that stand in for those of SLURM."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name, body in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/bash\n{body}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("CLUSTER", str(folder))
    monkeypatch.setenv("JOB", str(next(JOBS)))
    # The state of a job is asked for each time.
    monkeypatch.setattr(SlurmInfoWatcher, "update_if_long_enough", lambda self, mode: mode == "cache" or self.update())
    return folder


def test_a_step_runs_as_a_job_and_is_marked_or_tells_how_it_failed(tmp_path: Path) -> None:
    work, said = step(tmp_path, "print('hello')"), list[str]()
    cluster = Cluster(tmp_path / "jobs", "local")
    assert cluster.run(replace(work, made_from={"config": "c"}), said.append) is not None
    assert work.log.read_text().endswith("\nhello\n") and said[0].startswith("    job ")
    assert work.state.facts["done"]["work"]["made_from"] == {"config": "c"} and work.is_done
    work.state.forget("work")
    with refused("no such thing", StepError):
        cluster.run(step(tmp_path, "raise SystemExit('no such thing')"), print)


def test_a_cluster_that_is_stopped_cancels_the_job_that_a_thread_waits_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    work = step(tmp_path, WAITS.format(str(pid)))
    cluster, told = Cluster(tmp_path / "jobs", "local"), list[str]()

    def run() -> None:
        try:
            cluster.run(work, lambda line: None)
        except StepError as error:
            told.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    while not (pid.is_file() and pid.read_text()):
        time.sleep(0.05)
    cluster.stop()
    thread.join()
    assert told == ["work was stopped."]
    while Path("/proc", pid.read_text()).exists():
        time.sleep(0.05)
    with refused("work", StepError):
        cluster.run(work, print)


def test_machines_of_slurm_meet_at_the_first_of_them(slurm: Path, tmp_path: Path) -> None:
    work = step(tmp_path, TELL, nodes=2)
    Cluster(tmp_path / "jobs").run(work, print)
    rank, address, port = work.log.read_text().splitlines()[-1].split()
    assert (rank, address) == ("0", "node1") and 20000 <= int(port) <= 60000
    assert (tmp_path / "work.1.log").read_text().splitlines()[-1] == f"1 node1 {port}"
    assert work.state.facts["done"]["work"]["hardware"]["nodes"] == 2


def test_a_job_asks_for_what_its_step_needs(slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (slurm / "srun").write_text("#!/bin/sh\ntouch $CLUSTER/ended\n")
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 0)
    work = step(tmp_path, TELL, nodes=2, gpus=8)
    with refused("TIMEOUT", StepError):
        Cluster(tmp_path / "jobs").run(work, print)
    script = (slurm / "script").read_text()
    for option in ("nodes=2", "ntasks-per-node=1", "gpus-per-node=8", "cpus-per-task=32", "time=4320"):
        assert f"#SBATCH --{option}\n" in script
    (launch,) = (line for line in script.splitlines() if line.startswith("srun "))
    assert "--cpus-per-task=32" in launch and "--kill-on-bad-exit=1" in launch
    (slurm / "sbatch").write_text("#!/bin/sh\necho 'invalid partition specified: gpu' >&2; exit 1\n")
    with refused("invalid partition specified: gpu", StepError):
        Cluster(tmp_path / "jobs").run(step(tmp_path, TELL), print)
