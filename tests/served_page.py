"""Runs the page of `serve` in this process."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import uvicorn

from pyramidions.serve.app import make_app
from pyramidions.serve.summaries import methods, worker_of


class Page:
    """The page, as a program asks it."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port, self.folder = port, folder

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> HTTPResponse:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def upload(self, content: bytes, name: str, **options: object) -> tuple[int, str]:
        """Return the status and what the page says: the key of a summary, or an error."""
        asked = "&".join(f"{key}={value}" for key, value in {"name": name, "method": "hiporank", **options}.items())
        answer = self.ask("POST", f"/summary?{asked}", content)
        return answer.status, answer.read().decode()


@contextmanager
def served(folder: Path) -> Iterator[Page]:
    found = methods()
    with closing(worker_of(found, folder)) as worker, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(
                make_app(list(found), worker, folder), log_level="error", lifespan="off", timeout_graceful_shutdown=1
            )
        )
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        deadline = time.monotonic() + 30
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        try:
            yield Page(listening.getsockname()[1], folder)
        finally:
            server.should_exit = True
            thread.join()
