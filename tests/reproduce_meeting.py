"""Where machines of a test meet."""

import socket
from contextlib import closing


def rendezvous() -> str:
    """A free port of this machine whose successor is free, too, as far as one can know."""
    for _ in range(50):
        with closing(socket.socket()) as one, closing(socket.socket()) as two:
            one.bind(("127.0.0.1", 0))
            try:
                two.bind(("127.0.0.1", one.getsockname()[1] + 1))
            except OSError:
                continue
            return f"127.0.0.1:{one.getsockname()[1]}"
    raise AssertionError("no two ports are free")
