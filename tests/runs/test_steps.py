"""Steps: their commands, what is noted of them, and what is not done again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from pyramidions.files.processes import USER_DIR, as_typed
from pyramidions.runs.steps import Command, State, Step, StepError, run, run_commands, run_step

NAMES = ("one", "two", "three")


class Stopped(BaseException):
    """As an interrupt: no error."""


def python(code: str, gpus: tuple[int, ...] | None = None) -> Command:
    return Command((sys.executable, "-c", code), gpus)


def step(place: Path, *commands: Command, **options: Any) -> Step:
    return Step("work", commands, (), place / "work.log", **options)


def read(path: Path) -> State | None:
    return State.read(path, "inputs", writer="pyramidions train", remedy="--overwrite begins anew")


def rehearse(folder: Path, stops_in: str | None = None) -> tuple[list[str], list[str]]:
    """Go on with a run whose steps only make their files; return those that were taken, and what it said."""
    taken, said = list[str](), list[str]()

    def take(name: str) -> Callable[[], Sequence[Command]]:
        def work() -> Sequence[Command]:
            taken.append(name)
            if name == stops_in:
                raise Stopped
            (folder / name).write_text("made")
            return []

        return work

    state = read(folder / "run.json") or State.new(folder / "run.json", inputs={})
    steps = [Step(name, take(name), (folder / name,), folder / "log") for name in NAMES]
    try:
        run(steps, state, said.append)
    except Stopped:
        assert stops_in
    return taken, said


@pytest.mark.parametrize("stop", ["one", "three"])
def test_a_run_that_was_stopped_goes_on_with_the_same_step(tmp_path: Path, stop: str) -> None:
    place = NAMES.index(stop)
    assert rehearse(tmp_path, stops_in=stop)[0] == [*NAMES[: place + 1]]
    taken, said = rehearse(tmp_path)
    assert taken == [*NAMES[place:]]
    assert said[:place] == [f"{number} of 3: {name}, done before" for number, name in enumerate(NAMES[:place], 1)]
    assert rehearse(tmp_path)[0] == []


def test_what_was_deleted_is_made_again_with_all_that_came_from_it(tmp_path: Path) -> None:
    rehearse(tmp_path)
    for lost in NAMES:
        (tmp_path / lost).unlink()
        assert rehearse(tmp_path, stops_in=lost)[0] == [lost]
        # Also if it is stopped before the later ones are made.
        assert rehearse(tmp_path)[0] == [*NAMES[NAMES.index(lost) :]]
    # Steps that an older release noted are done.
    (tmp_path / "run.json").write_text('{"format": 1, "inputs": {}, "done": {"one": 1.5, "two": 2.0, "three": 0.1}}')
    assert rehearse(tmp_path)[0] == []


def test_what_was_made_from_something_else_is_neither_taken_nor_forgotten(tmp_path: Path) -> None:
    state = State.new(tmp_path / "run.json")
    these = step(tmp_path, made_from={"data": "these"})
    assert not state.is_done(these)
    state.finish(these, seconds=1.0)
    assert state.is_done(these)
    with refused("work was done with other data or another config: give another --out, or move", StepError):
        state.is_done(replace(these, made_from={"data": "those"}))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        *[(content, "must be as written by `pyramidions train`; ") for content in ("{", "[]", '{"format": 1}')],
        (
            '{"format": 1, "done": {}, "inputs": []}',
            "must be as written by `pyramidions train`; --overwrite begins anew",
        ),
        ('{"format": 2, "done": {}, "inputs": {}}', "is of another version of pyramidions; --overwrite begins anew"),
    ],
)
def test_a_damaged_state_is_refused(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with refused(told):
        read(tmp_path / "run.json")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise RuntimeError('no room')", "RuntimeError: no room"),
        ("import sys; sys.exit('Error: the file is gone.')", "the file is gone"),
        ("import sys; print('what it said'); sys.exit(3)", "what it said"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9 killed it, perhaps for lack of memory"),
        ("import sys; sys.exit(3)", "it ended with status 3"),
    ],
)
def test_a_failure_is_one_sentence_with_its_reason_and_the_log(tmp_path: Path, code: str, reason: str) -> None:
    log = tmp_path / "work.log"
    log.write_text("RuntimeError: of an earlier run\n")
    with refused(f"{Path(sys.executable).name} failed: {reason}; all of its output is in {log}."):
        run_commands(step(tmp_path, python(code)))


def test_a_program_that_is_missing_and_a_file_that_was_not_made_are_named(tmp_path: Path) -> None:
    with refused("fairseq-none is not installed"):
        run_commands(step(tmp_path, Command(("fairseq-none",))))
    with refused("work ended well, but did not write ", StepError):
        run_step(replace(step(tmp_path, python("pass")), outputs=(tmp_path / "made",)))


def test_a_log_grows_and_the_output_goes_where_it_should(tmp_path: Path) -> None:
    work = step(tmp_path, python("import sys; print('table'); print('bar', file=sys.stderr)"), out=tmp_path / "out")
    for _ in range(2):
        run_commands(replace(work, cwd=tmp_path))
    assert (tmp_path / "out").read_text() == "table\n"
    assert (tmp_path / "work.log").read_text().count("\nbar\n") == 2


def test_when_one_of_several_fails_the_others_are_stopped(tmp_path: Path) -> None:
    sleeper = python("import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    with pytest.raises(StepError):
        run_commands(step(tmp_path, sleeper, python("import time; time.sleep(0.5); raise SystemExit(3)")))
    assert_gone(int((tmp_path / "work.log").read_text().splitlines()[2]))


def test_it_is_stopped_when_we_are(tmp_path: Path) -> None:
    def stop(processes: object) -> None:
        if (tmp_path / "pid").exists():
            raise KeyboardInterrupt

    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        run_commands(step(tmp_path, python(code), cwd=tmp_path, watch=lambda: nullcontext(stop)))
    assert_gone(int((tmp_path / "pid").read_text() or 0))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the children of a killed process")
def test_it_ends_when_we_are_killed(tmp_path: Path) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    imports = "from pathlib import Path; from pyramidions.runs.steps import Command, Step, run_commands"
    ours = f"{imports}; run_commands(Step('work', [Command({python(code).words})], (), Path('log')))"
    process = subprocess.Popen(python(ours).words, cwd=tmp_path)
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert_gone(int((tmp_path / "pid").read_text()))


def assert_gone(pid: int) -> None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError(f"{pid} still runs")


def test_a_gpu_is_chosen_among_those_that_we_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    run_commands(step(tmp_path, python("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])", gpus=(1,))))
    assert (tmp_path / "work.log").read_text().endswith("\n6\n")


def test_what_computes_on_the_cpu_sees_no_gpu_and_nothing_sees_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_STEP_NODELIST", "node[1-2]")
    code = "import os; print([k for k in os.environ if 'SLURM' in k], repr(os.environ['CUDA_VISIBLE_DEVICES']))"
    run_commands(step(tmp_path, python(code, gpus=())))
    first, *_, last = (tmp_path / "work.log").read_text().splitlines()
    # A log begins with the command.
    assert first.startswith(f"$ CUDA_VISIBLE_DEVICES= {sys.executable} -c ") and last == "[] ''"


def test_a_command_is_shown_as_one_would_type_it() -> None:
    words = ("/somewhere/bin/fairseq-train", "my data", "--user-dir", USER_DIR, "--lr", "1", "--flag", "[8, 9]")
    assert as_typed(words) == "fairseq-train 'my data' --user-dir \"$(pyramidions user-dir)\" --lr 1 --flag '[8, 9]'"
    assert as_typed(words, 30) == (
        "fairseq-train 'my data' \\\n    --user-dir \"$(pyramidions user-dir)\" \\\n    --lr 1 --flag '[8, 9]'"
    )
    assert as_typed(("run", "dense(x='y')", "'$x'")) == """run "dense(x='y')" ''\"'\"'$x'\"'\"''"""
    assert str(Command(("run", "a b", "[8]"), (3, 5))) == "CUDA_VISIBLE_DEVICES=3,5 run 'a b' '[8]'"
