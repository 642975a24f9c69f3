"""`pyramidions serve`."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

from pyramidions.files.atomic import scratch_folder

TEXT = "We counted all bees in Rome. They were fed each day, and none was lost.\n\n"


def _stopped(how: signal.Signals, folder: Path) -> int:
    """Stop the command by a signal in the middle of a document, and return its exit status."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "pyramidions", "serve", "--port", str(port)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder)}) as server:
        try:
            assert server.stderr is not None
            assert server.stderr.readline() == f"Open http://127.0.0.1:{port} in a browser. Ctrl-C stops.\n"
            connection = HTTPConnection("127.0.0.1", port)
            connection.request("POST", "/summary?name=long.txt&method=hiporank", TEXT * 20_000)
            deadline = time.monotonic() + 30
            while not list(folder.rglob("document.txt")):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            server.send_signal(how)
            status = server.wait(20)
            # The process that summarizes ends, too: it would hold this pipe open.
            assert "Traceback" not in server.stderr.read()
            return status
        finally:
            server.kill()


@pytest.mark.parametrize(("how", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_it_stops_at_once_in_the_middle_of_a_document_and_leaves_nothing(
    how: signal.Signals, status: int, tmp_path: Path
) -> None:
    assert _stopped(how, tmp_path) == status
    assert not list(tmp_path.iterdir())


def test_a_killed_one_leaves_nothing_for_long(tmp_path: Path) -> None:
    assert _stopped(signal.SIGKILL, tmp_path) == -signal.SIGKILL
    # The process that summarizes has seen it, and ended.
    assert not list(tmp_path.iterdir())


def test_what_a_killed_one_left_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    killed = "import os; from pyramidions.files.atomic import *\nwith scratch_folder(): os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed], check=False)
    (left,) = tmp_path.iterdir()
    with scratch_folder() as held, scratch_folder() as other:
        assert {*tmp_path.iterdir()} == {held, other} and left not in (held, other)
    assert not list(tmp_path.iterdir())


def test_a_port_that_is_taken_is_refused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = [sys.executable, "-m", "pyramidions", "serve", "--port", str(port)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == f"Error: --port must be a free port, but {port} is not available: Address already in use.\n"
