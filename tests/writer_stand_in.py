"""A server with the OpenAI interface on this machine, which says what a test tells it to say."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

#: Returns the status and the body of an answer, given the body of a request.
Answer = Callable[[dict[str, Any]], tuple[int, bytes]]


def message(text: str | None, reason: str = "stop") -> tuple[int, bytes]:
    """Return an answer that holds a text."""
    body = {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": reason}]}
    return 200, json.dumps(body).encode()


class Writer:
    """What was asked of a server.

    Attributes:
        url: of the interface.
        asked: the body of each request.
        headers: of each request.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def prompts(self) -> list[str]:
        """What the user of each request says."""
        return [body["messages"][-1]["content"] for body in self.asked]


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that have gone."""


@contextmanager
def writer(answer: Answer) -> Iterator[Writer]:
    """Run a server."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.headers.append(dict(self.headers))
            found.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, body = answer(found.asked[-1]) if self.path == "/v1/chat/completions" else (404, b"{}")
            self.send_response(status)
            if status in (302, 307):
                self.send_header("Location", body.decode())
                body = b""
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = _Quiet(("127.0.0.1", 0), Handler)
    found = Writer(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
