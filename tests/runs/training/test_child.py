"""Commands that a run starts."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.files.processes import USER_DIR, as_typed
from pyramidions.runs.training.child import run_child


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


@for_each(
    ("code", "reason"),
    [
        ("raise RuntimeError('no room')", "RuntimeError: no room"),
        ("import sys; sys.exit('Error: the file is gone.')", "the file is gone"),
        (
            "from pyramidions.base.errors import UserError; raise UserError('--lr must be above 0.')",
            "--lr must be above 0",
        ),
        ("import sys; print('what it said'); sys.exit(3)", "what it said"),
        ("import os; os.kill(os.getpid(), 9)", "signal 9 killed it, perhaps for lack of memory"),
        ("import sys; sys.exit(3)", "it ended with status 3"),
    ],
)
def test_a_failure_is_one_sentence_with_its_reason_and_the_log(tmp_path: Path, code: str, reason: str) -> None:
    log = tmp_path / "work.log"
    log.write_text("RuntimeError: of an earlier run\n")
    with pytest.raises(UserError) as error:
        run_child(python(code), log)
    assert str(error.value) == f"{Path(sys.executable).name} failed: {reason}; all of its output is in {log}."


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="fairseq-none is not installed: scripts/setup.sh train brings"):
        run_child(("fairseq-none",), tmp_path / "log")


def test_a_log_grows_and_the_output_goes_where_it_should(tmp_path: Path) -> None:
    code = "import sys; print('table'); print('bar', file=sys.stderr)"
    for _ in range(2):
        run_child(python(code), tmp_path / "log", out=tmp_path / "out", folder=tmp_path)
    assert (tmp_path / "out").read_text() == "table\n"
    assert (tmp_path / "log").read_text().count("\nbar\n") == 2


def test_it_is_stopped_when_we_are(tmp_path: Path) -> None:
    def stop() -> None:
        if (tmp_path / "pid").exists():
            raise KeyboardInterrupt

    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        run_child(python(code), tmp_path / "log", folder=tmp_path, tick=stop)
    assert_gone(int((tmp_path / "pid").read_text() or 0))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the children of a killed process")
def test_it_ends_when_we_are_killed(tmp_path: Path) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    imports = "from pathlib import Path; from pyramidions.runs.training.child import run_child"
    ours = f"{imports}; run_child({python(code)}, Path('log'))"
    process = subprocess.Popen(python(ours), cwd=tmp_path)
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


def test_a_command_is_shown_as_one_would_type_it() -> None:
    words = ("/somewhere/bin/fairseq-train", "my data", "--user-dir", USER_DIR, "--lr", "1", "--flag", "[8, 9]")
    assert as_typed(words) == "fairseq-train 'my data' --user-dir \"$(pyramidions user-dir)\" --lr 1 --flag '[8, 9]'"
    assert as_typed(words, 30) == (
        "fairseq-train 'my data' \\\n    --user-dir \"$(pyramidions user-dir)\" \\\n    --lr 1 --flag '[8, 9]'"
    )
