import os
import sys
import threading
import time
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from submitit.slurm.slurm import SlurmInfoWatcher

from lab.run import RowStep
from lab.slurm import Cluster, StepJob
from pyramidions.runs.steps import Command, StepError

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


def step(folder: Path, code: str, nodes: int = 1, gpus: int = 0) -> RowStep:
    (folder / "made").touch()
    command = Command((sys.executable, "-c", code))
    return RowStep("train", (command,), (folder / "made",), folder / "train.log", nodes=nodes, gpus=gpus)


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


@pytest.mark.nightly
def test_a_step_runs_as_a_job_and_is_marked(tmp_path: Path) -> None:
    work, said = step(tmp_path, "print('hello')"), list[str]()
    assert Cluster(tmp_path / "jobs", "local").run(replace(work, made_from={"config": "c"}), said.append) is not None
    assert work.log.read_text().endswith("\nhello\n") and said[0].startswith("    job ")
    assert work.state.facts["done"]["train"]["made_from"] == {"config": "c"} and work.is_done


@pytest.mark.nightly
def test_a_step_that_fails_in_a_job_tells_as_it_does_here(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="failed: no such thing; all of its output is in .*train.log"):
        Cluster(tmp_path / "jobs", "local").run(step(tmp_path, "raise SystemExit('no such thing')"), print)


@pytest.mark.nightly
def test_a_stopped_run_stops_its_job(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    work = step(tmp_path, f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)")

    def stop(*_: object, **__: object) -> None:
        while not (pid.is_file() and pid.read_text()):
            pass
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("lab.slurm.Teller.__call__", stop)
        Cluster(tmp_path / "jobs", "local").run(work, print)
    while Path("/proc", pid.read_text()).exists():
        pass


def test_a_machine_but_the_first_only_runs_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {"JOB_ID": "7", "NTASKS": "2", "JOB_NUM_NODES": "2", "JOB_NODELIST": "node[1-2]", "PROCID": "1"}
    for name, value in nodes.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    monkeypatch.setenv("SUBMITIT_EXECUTOR", "slurm")
    work = step(tmp_path, TELL, nodes=2)
    assert StepJob(work, waits=False)() is None
    assert (tmp_path / "train.1.log").read_text().splitlines()[-1].startswith("1 node1 ")
    assert not work.is_done and not work.log.exists()


@pytest.mark.nightly
def test_machines_of_slurm_meet_at_the_first_of_them(slurm: Path, tmp_path: Path) -> None:
    work = step(tmp_path, TELL, nodes=2)
    Cluster(tmp_path / "jobs").run(work, print)
    rank, address, port = work.log.read_text().splitlines()[-1].split()
    assert (rank, address) == ("0", "node1") and 20000 <= int(port) <= 60000
    assert (tmp_path / "train.1.log").read_text().splitlines()[-1] == f"1 node1 {port}"
    assert work.state.facts["done"]["train"]["hardware"]["nodes"] == 2


def test_a_job_asks_for_what_its_step_needs(slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (slurm / "srun").write_text("#!/bin/sh\ntouch $CLUSTER/ended\n")
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 0)
    work = step(tmp_path, TELL, nodes=2, gpus=8)
    with pytest.raises(StepError, match=r"train: job \d+ ended without a result \(TIMEOUT\); see .*train.log"):
        Cluster(tmp_path / "jobs").run(work, print)
    script = (slurm / "script").read_text()
    for option in ("nodes=2", "ntasks-per-node=1", "gpus-per-node=8", "cpus-per-task=32", "time=4320"):
        assert f"#SBATCH --{option}\n" in script
    (launch,) = (line for line in script.splitlines() if line.startswith("srun "))
    assert "--cpus-per-task=32" in launch and "--kill-on-bad-exit=1" in launch


def test_what_sbatch_says_when_it_refuses_a_job_is_told(slurm: Path, tmp_path: Path) -> None:
    (slurm / "sbatch").write_text("#!/bin/sh\necho 'invalid partition specified: gpu' >&2; exit 1\n")
    with pytest.raises(StepError, match="^train was not submitted: invalid partition specified: gpu$"):
        Cluster(tmp_path / "jobs").run(step(tmp_path, TELL), print)


@pytest.mark.nightly
def test_a_cluster_that_is_stopped_cancels_the_job_that_a_thread_waits_for(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    work = step(tmp_path, f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
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
    assert told == ["train was stopped."]
    while Path("/proc", pid.read_text()).exists():
        time.sleep(0.05)
    with pytest.raises(StepError, match="^train was stopped.$"):
        cluster.run(work, print)
