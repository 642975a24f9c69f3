import os
import sys
from pathlib import Path

import pytest

from lab.peak import resident_peak, told, training_memory
from lab.run import Command, Step, run_commands


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak of a process")
def test_a_process_has_had_more_than_a_megabyte_and_one_that_has_ended_says_nothing() -> None:
    assert resident_peak(os.getpid()) > 2**20
    assert resident_peak(2**30) == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak of a process")
def test_the_log_of_a_training_on_the_cpu_tells_its_peak_and_no_other_does(tmp_path: Path) -> None:
    code = "import time; held = bytearray(200 * 2**20); del held; time.sleep(1)"
    for trains in (True, False):
        step = Step(str(trains), (Command((sys.executable, "-c", code)),), tmp_path, tmp_path / "made", trains=trains)
        run_commands(step, step.log, None, print)
    found = training_memory(tmp_path / "True.log", 0)
    assert found is not None and found["of"] == "process" and found["bytes"] > 200 * 2**20
    assert training_memory(tmp_path / "False.log", 0) is None


def test_the_peak_is_the_highest_of_all_runs_that_a_training_took(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(b"$ train\n" + told(300) + b"$ train\n" + told(200))
    assert training_memory(log, 0) == {"bytes": 300, "of": "process"}


def test_on_a_gpu_it_is_what_was_allocated_not_what_the_process_had(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes(
        b'rank 0: total memory = 80.000 GB ; H100\n"gb_free": "60.5", "wall": "1"\ngb_free=64.0\n' + told(5)
    )
    assert training_memory(log, 8) == {"bytes": round(19.5 * 2**30), "of": "gpu"}
    log.write_bytes(told(5))
    assert training_memory(log, 8) is None
