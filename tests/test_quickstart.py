"""What scripts/quickstart.sh shows and does, with commands that only pretend to train."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]

# Updates 5, 10, ... of what is asked for, as fairseq logs them.
FAIRSEQ_TRAIN = """
echo "$*" >"$OUT/flags"
for ((i = 5; i <= 40; i += 5)); do
    echo '2026 | INFO | train_inner | {"epoch": 1, "loss": "8.'$i'", "num_updates": "'$i'", "lr": "0.1"}'
done
[[ ! -v HANG ]] || exec "$PYTHON_HERE" -c 'print("hangs", flush=True); import time; time.sleep(60)'
"""
PYRAMIDIONS = 'mkdir -p "$OUT/checkpoints"'


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a quickstart puts all it makes; beside it a checkout whose commands pretend."""
    scripts, commands = tmp_path / "checkout" / "scripts", tmp_path / "checkout" / ".venv" / "bin"
    scripts.mkdir(parents=True)
    commands.mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "quickstart.sh", scripts)
    pretended = {"fairseq-train": FAIRSEQ_TRAIN, "fairseq-generate": "", "pyramidions": PYRAMIDIONS}
    for path, body in {**{commands / name: body for name, body in pretended.items()}, scripts / "setup.sh": ""}.items():
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
    (commands / "python").symlink_to(sys.executable)
    return tmp_path / "out"


def start(out: Path, stdout: int, **environment: str) -> "subprocess.Popen[str]":
    env = {**os.environ, "OUT": str(out), "UPDATES": "40", "PYTHON_HERE": sys.executable, **environment}
    # A test has its streams; an environment as in `.venv/bin` finds torch through the path.
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    script = [out.parent / "checkout" / "scripts" / "quickstart.sh"]
    streams = {"stdout": stdout, "stderr": subprocess.STDOUT}
    return subprocess.Popen(script, **streams, text=True, env=env, start_new_session=True)


def run(out: Path, status: int = 0, **environment: str) -> str:
    process = start(out, subprocess.PIPE, **environment)
    printed, _ = process.communicate()
    assert process.returncode == status, printed
    return printed


def save(path: Path, updates: int, seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {"optimizer_history": [{"num_updates": updates}], "extra_state": {"previous_training_time": seconds}}
    torch.save(state, path)


def test_on_a_terminal_one_line_counts_updates_up_to_all_of_them(out: Path) -> None:
    ours, terminal = pty.openpty()
    process = start(out, terminal)
    os.close(terminal)
    printed = b""
    while chunk := _read(ours):
        printed += chunk
    assert process.wait() == 0
    lines = printed.decode().split("\r\n")
    (line,) = (line for line in lines if "40 of 40 updates, loss 8.40, 0:00 left" in line)
    shown = [part.strip() for part in line.split("\r") if part.strip()]
    assert [text.split(",")[0] for text in shown] == [f"{n} of 40 updates" for n in range(5, 45, 5)]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # all that wrote to it have ended
        return b""


def test_an_interrupt_is_answered_in_one_line(out: Path) -> None:
    process = start(out, subprocess.PIPE, HANG="1")
    log = out / "train.log"
    while not (log.exists() and "hangs" in log.read_text()):
        assert process.poll() is None
        time.sleep(0.05)
    # The terminal sends it to every process of the group.
    os.killpg(process.pid, signal.SIGINT)
    printed, _ = process.communicate()
    assert process.returncode == 130
    assert printed.endswith("\nquickstart: interrupted; run it again to go on.\n")
    assert "Traceback" not in printed


def test_what_stopped_before_the_last_update_is_trained_on_by_the_next_run(out: Path) -> None:
    save(out / "checkpoints" / "checkpoint_1_20.pt", 20, 1500.0)
    (out / "checkpoints" / "checkpoint_last.pt").write_bytes(b"half of it")
    printed = run(out)
    assert "It has 20 updates of an earlier run and goes on." in printed
    # The 25 minutes of before and five more.
    assert "--max-update 40 " in (out / "flags").read_text() and "--stop-time-hours 0.5 " in (out / "flags").read_text()
    assert "Stopped after 20 of 40 updates, since five minutes were over. Run it again to train on" in printed


def test_what_is_trained_is_not_trained_again_and_a_failure_ends_with_its_log(out: Path) -> None:
    save(out / "checkpoints" / "checkpoint_last.pt", 40, 60.0)
    assert "It is trained already, for 40 updates." in run(out)
    assert not (out / "flags").exists()
    failing = out.parent / "checkout" / ".venv" / "bin" / "fairseq-generate"
    failing.write_text("#!/bin/bash\necho 'no such thing' >&2\nexit 1\n")
    printed = run(out, 1)
    end = f"no such thing\nquickstart: fairseq-generate failed; all of its output is in {out}/generate.log.\n"
    assert printed.endswith(end)


def test_updates_that_are_no_number_are_refused_before_anything_is_made(out: Path) -> None:
    for updates in ("abc", "0", "-5"):
        printed = run(out, 2, UPDATES=updates)
        assert printed == f"quickstart: UPDATES must be a number of updates, at least 1, but is '{updates}'.\n"
    assert not out.exists()
