"""`pyramidions serve`."""

import os
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

TEXT = "We counted all bees in Rome. They were fed each day, and none was lost.\n\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_at_once_in_the_middle_of_a_document_and_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "pyramidions", "serve", "--port", str(port)]
    with subprocess.Popen(
        line, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    ) as server:
        try:
            assert server.stderr is not None
            assert server.stderr.readline() == f"Open http://127.0.0.1:{port} in a browser. Ctrl-C stops.\n"
            connection = HTTPConnection("127.0.0.1", port)
            connection.request("POST", "/summary?name=long.txt&method=hiporank", TEXT * 20_000)
            deadline = time.monotonic() + 30
            while not list(tmp_path.rglob("document.txt")):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            server.send_signal(how)
            assert server.wait(20) == (0 if how == signal.SIGINT else 128 + how)
            assert "Traceback" not in server.stderr.read()
        finally:
            server.kill()
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
