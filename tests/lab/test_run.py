import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from lab import run as module
from lab.run import Command, Step, StepError, _where, check_programs, locked, printed, run_step
from pyramidions.base.errors import UserError


@pytest.fixture(autouse=True)
def hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started to ask for the hardware."""
    monkeypatch.setattr(module, "_hardware", lambda device: {"device": device, "threads": 1})


def python(code: str, gpus: tuple[int, ...] | None = None) -> Command:
    return Command((sys.executable, "-c", code), gpus)


def step(folder: Path, *commands: Command, parts: tuple[Path, ...] = ()) -> Step:
    (folder / "made").touch()
    return Step("work", commands, folder, folder / "made", parts)


def run(work: Step) -> float | None:
    return run_step(work, {}, lambda line: None)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    work = step(tmp_path, python("print('hello')"))
    assert run(work) is not None
    assert run(work) is None
    assert (tmp_path / "work.log").read_text().count("\nhello\n") == 1


def test_a_log_begins_with_the_command(tmp_path: Path) -> None:
    run(step(tmp_path, python("pass")))
    assert (tmp_path / "work.log").read_text() == f"$ {sys.executable} -c pass\n"


def test_a_failure_shows_the_end_of_the_log_and_leaves_the_step_undone(tmp_path: Path) -> None:
    work = step(tmp_path, python("import sys; print('first'); sys.exit('no such thing')"))
    with pytest.raises(StepError, match="(?s)work failed; the end of .*work.log:.*no such thing"):
        run(work)
    assert not work.is_done


def test_a_mark_says_where_and_by_which_code_a_step_ran(tmp_path: Path) -> None:
    work = step(tmp_path, python("pass"))
    run(work)
    mark = json.loads(work.mark.read_text())
    assert mark["seconds"] >= 0 and mark["commit"] and mark["versions"]["python"]
    assert mark["hardware"]["threads"] >= 1 and (mark["hardware"]["nodes"], mark["hardware"]["gpus"]) == (1, 0)


def test_what_was_made_without_a_mark_is_made_again(tmp_path: Path) -> None:
    work = step(tmp_path, python("pass"))
    run(work)
    work.mark.unlink()
    assert run(work) is not None


def test_what_was_made_from_something_else_is_neither_taken_nor_overwritten(tmp_path: Path) -> None:
    work = step(tmp_path, python("pass"))
    for _ in range(2):
        run_step(work, {"data": "these"}, lambda line: None)
    with pytest.raises(StepError, match="work was done with other data or another config"):
        run_step(work, {"data": "those"}, lambda line: None)
    assert json.loads(work.mark.read_text())["made_from"] == {"data": "these"}


def test_training_is_told_in_words(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    lines = [f'{{"epoch": 2, "update": {update}, "loss": "{loss}", "nll' for update, loss in ((1.4, 9.8), (1.6, 8.965))]
    log.write_text("\n".join([*lines, "validating", ""]))
    assert _where(log) == "epoch 2, 1.6 epochs done, loss 8.965"
    log.write_text("one\ntwo\n")
    assert _where(log) == "two"


def test_when_one_of_several_fails_the_others_are_stopped(tmp_path: Path) -> None:
    sleeper = python("import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    with pytest.raises(StepError):
        run(step(tmp_path, sleeper, python("import time; time.sleep(0.5); raise SystemExit(3)")))
    pid = int((tmp_path / "work.log").read_text().splitlines()[2])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_parts_are_joined_in_order(tmp_path: Path) -> None:
    parts = (tmp_path / "one", tmp_path / "two")
    code = "import pathlib, sys; pathlib.Path({!r}).write_text({!r})"
    commands = [python(code.format(str(part), f"{part.name}\n")) for part in parts]
    run(step(tmp_path, *commands, parts=parts))
    assert (tmp_path / "made").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("parts", [(), (Path("/nowhere/part"),)])
def test_a_command_that_does_not_make_what_it_should_has_failed(tmp_path: Path, parts: tuple[Path, ...]) -> None:
    work = step(tmp_path, python("pass"), parts=parts)
    work.made.unlink()
    with pytest.raises(StepError, match="work ended well, but did not write "):
        run(work)


def test_a_folder_is_held_as_long_as_a_process_works_in_it(tmp_path: Path) -> None:
    work = step(tmp_path, python("import time; time.sleep(1.5)"))
    thread = threading.Thread(target=run, args=(work,))
    thread.start()
    while not (tmp_path / "work.log").exists():
        pass
    time.sleep(0.3)
    with pytest.raises(StepError, match=r"another process \(\d+\) still works in"), locked(tmp_path):
        pass
    said: list[str] = []
    with locked(tmp_path, wait=said.append):
        assert not thread.is_alive() or work.is_done
    assert len(said) == 1 and "waiting for another process (" in said[0]
    thread.join()


def test_a_gpu_is_chosen_among_those_that_we_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    run(step(tmp_path, python("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])", gpus=(1,))))
    assert (tmp_path / "work.log").read_text().endswith("\n6\n")


def test_what_computes_on_the_cpu_sees_no_gpu_and_nothing_sees_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_STEP_NODELIST", "node[1-2]")
    code = "import os; print([k for k in os.environ if 'SLURM' in k], repr(os.environ['CUDA_VISIBLE_DEVICES']))"
    run(step(tmp_path, python(code, gpus=())))
    assert (tmp_path / "work.log").read_text().endswith("\n[] ''\n")


def test_a_command_is_printed_as_one_would_type_it() -> None:
    assert printed(Command(("run", "a b", "[8]"), (3, 5))) == "CUDA_VISIBLE_DEVICES=3,5 run 'a b' '[8]'"


def test_a_missing_program_is_named_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no-such-program is not installed"):
        check_programs([step(tmp_path, Command(("no-such-program",)))])
