import os
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lab import run as module
from lab.run import (
    RowStep,
    _where,
    joined,
    locked,
    resident_peak,
    run_here,
    training_memory,
)
from pyramidions.runs.steps import Command, StepError

HAS_PROC = Path("/proc/self/status").exists()


@pytest.fixture(autouse=True)
def hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started to ask for the hardware."""
    monkeypatch.setattr(module, "_hardware", lambda device: {"device": device, "threads": 1})


def python(code: str) -> Command:
    return Command((sys.executable, "-c", code))


def step(folder: Path, *commands: Command, trains: bool = False) -> RowStep:
    (folder / "made").touch()
    return RowStep("work", commands, (folder / "made",), folder / "work.log", trains=trains)


def run(work: RowStep) -> float | None:
    return run_here(work, lambda line: None)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    work = step(tmp_path, python("print('hello')"))
    assert run(work) is not None
    assert run(work) is None
    assert (tmp_path / "work.log").read_text().count("\nhello\n") == 1


def test_a_failure_leaves_the_step_undone(tmp_path: Path) -> None:
    work = step(tmp_path, python("import sys; sys.exit('no such thing')"))
    with pytest.raises(StepError, match="failed: no such thing; all of its output is in .*work.log"):
        run(work)
    assert not work.is_done


def test_a_step_says_where_and_by_which_code_it_ran(tmp_path: Path) -> None:
    work = step(tmp_path, python("pass"))
    run(work)
    facts = work.state.facts["done"]["work"]
    assert facts["seconds"] >= 0 and facts["commit"] and facts["versions"]["python"]
    assert facts["hardware"]["threads"] >= 1 and (facts["hardware"]["nodes"], facts["hardware"]["gpus"]) == (1, 0)


def test_what_was_made_without_being_noted_is_made_again(tmp_path: Path) -> None:
    work = step(tmp_path, python("pass"))
    run(work)
    work.state.forget("work")
    assert run(work) is not None


def test_what_was_made_from_something_else_is_neither_taken_nor_overwritten(tmp_path: Path) -> None:
    work = step(tmp_path, python("pass"))
    for _ in range(2):
        run(replace(work, made_from={"data": "these"}))
    with pytest.raises(StepError, match="work was done with other data or another config"):
        run(replace(work, made_from={"data": "those"}))
    assert work.state.facts["done"]["work"]["made_from"] == {"data": "these"}


def test_training_is_told_in_words(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    lines = [
        f'{{"epoch": 2, "loss": "{loss}", "num_updates": "{update}"}}' for update, loss in ((10, 9.8), (20, 8.965))
    ]
    log.write_text("\n".join([*lines, "validating", ""]))
    assert _where(log) == "20 updates, loss 8.96"
    log.write_text("one\ntwo\n")
    assert _where(log) == "two"


def test_parts_are_joined_in_order(tmp_path: Path) -> None:
    parts = (tmp_path / "one", tmp_path / "two")
    code = "import pathlib, sys; pathlib.Path({!r}).write_text({!r})"
    commands = [python(code.format(str(part), f"{part.name}\n")) for part in parts]
    run(replace(step(tmp_path, *commands), after=partial(joined, parts, tmp_path / "made")))
    assert (tmp_path / "made").read_text() == "one\ntwo\n"
    with pytest.raises(StepError, match="generate ended well, but did not write /nowhere/part"):
        joined([Path("/nowhere/part")], tmp_path / "made")


def test_a_folder_is_held_as_long_as_a_process_works_in_it(tmp_path: Path) -> None:
    work = step(tmp_path, python("import time; time.sleep(1.5)"))
    thread = threading.Thread(target=run, args=(work,))
    thread.start()
    while not (tmp_path / "work.log").exists():
        pass
    time.sleep(0.3)
    with pytest.raises(StepError, match="another process still works in"), locked(tmp_path):
        pass
    said: list[str] = []
    with locked(tmp_path, wait=said.append):
        assert not thread.is_alive() or work.is_done
    assert said == [f"  waiting for another process that works in {tmp_path}"]
    thread.join()


@pytest.mark.skipif(not HAS_PROC, reason="Linux tells the peak of a process")
def test_a_process_has_had_more_than_a_megabyte_and_one_that_has_ended_says_nothing() -> None:
    assert resident_peak(os.getpid()) > 2**20
    assert resident_peak(2**30) == 0


@pytest.mark.skipif(not HAS_PROC, reason="Linux tells the peak of a process")
@pytest.mark.parametrize("trains", [True, False])
def test_a_training_on_the_cpu_notes_its_peak_and_no_other_step_does(tmp_path: Path, trains: bool) -> None:
    code = "import time; held = bytearray(200 * 2**20); del held; time.sleep(1)"
    work = step(tmp_path, python(code), trains=trains)
    run(work)
    memory = work.state.facts["done"]["work"].get("memory")
    assert (memory is not None and memory["of"] == "process" and memory["bytes"] > 200 * 2**20) is trains


def test_the_peak_is_the_highest_of_all_runs_that_a_training_took(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"$ train\n# peak memory of the process: {peak} B\n" for peak in (300, 200)))
    assert training_memory(log, 0) == {"bytes": 300, "of": "process"}


def test_on_a_gpu_it_is_what_was_allocated_not_what_the_process_had(tmp_path: Path) -> None:
    log, told = tmp_path / "train.log", "# peak memory of the process: 5 B\n"
    log.write_text(
        f'rank 0: total memory = 80.000 GB ; H100\n"gb_free": "60.5", "wall": "1"\n"gb_free": "64.0"\n{told}'
    )
    assert training_memory(log, 8) == {"bytes": round(19.5 * 2**30), "of": "gpu"}
    log.write_text(told)
    assert training_memory(log, 8) is None
