"""Several machines that train together: the first says which training comes next, the others join it.

Between two trainings the first generates, scores and times, for hours at the paper's size; the others wait for its
word, so that no two machines ever take different trainings for the same one.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count

from torch.distributed import DistError, TCPStore  # type: ignore[attr-defined]

from pyramidions.errors import UserError

Say = Callable[[str], None]
_PATIENCE = timedelta(days=14)
_FAREWELL = 60.0  # seconds that the first machine stays for the others to hear that it is over
_OVER = "-"


def address(rendezvous: str) -> tuple[str, int]:
    """Return host and port of "HOST:PORT".

    Raises:
        UserError: it is something else.
    """
    host, _, port = rendezvous.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65535:
        raise UserError(f"--rendezvous must be HOST:PORT with a port from 1 to 65534, but is {rendezvous!r}.")
    return host, int(port)


class Leader:
    """The word of the first machine.

    Args:
        rendezvous: HOST:PORT; it is spoken at the port after that one, which the trainings themselves use.
        others: how many machines listen.

    Raises:
        UserError: that port is not free, or the host is not this one.
    """

    def __init__(self, rendezvous: str, others: int) -> None:
        host, port = address(rendezvous)
        try:
            self._store = TCPStore(host, port + 1, is_master=True, wait_for_workers=False, timeout=_PATIENCE)
        except DistError as error:
            said = str(error).splitlines()[0]
            raise UserError(
                f"--rendezvous must name this machine and two free ports, but is {rendezvous}: {said}"
            ) from None
        self._others = others
        self._said = 0
        self._store.set("said", "0")

    def gather(self, say: Say) -> None:
        """Wait until all machines listen."""
        say(f"waiting for {self._others} more to join")
        while self._store.add("listening", 0) < self._others:
            time.sleep(0.2)

    def announce(self, name: str) -> None:
        """Say which training comes next."""
        self._store.set(str(self._said), name)
        self._said += 1
        self._store.set("said", str(self._said))

    def dismiss(self) -> None:
        """Say that no training comes any more."""
        self.announce(_OVER)
        deadline = time.monotonic() + _FAREWELL
        while self._store.add("gone", 0) < self._others and time.monotonic() < deadline:
            time.sleep(0.2)


@contextmanager
def leading(rendezvous: str, others: int, say: Say) -> Iterator[Leader]:
    """Lead other machines, from when all listen to the end, however it comes."""
    leader = Leader(rendezvous, others)
    try:
        leader.gather(say)
        yield leader
    finally:
        leader.dismiss()


def trainings(rendezvous: str, patience: timedelta = _PATIENCE) -> Iterator[str]:
    """Yield which training comes next, as the first machine says, until it says that there is none.

    A machine that joins late begins with the next one.

    Args:
        rendezvous: HOST:PORT, as the first machine knows it.
        patience: how long the first machine may be silent, or not there yet.

    Raises:
        UserError: the first machine is gone.
    """
    host, port = address(rendezvous)
    try:
        store = TCPStore(host, port + 1, is_master=False, wait_for_workers=False, timeout=patience)
        first = int(store.get("said"))
        store.add("listening", 1)
        for number in count(first):
            name = store.get(str(number)).decode()
            if name == _OVER:
                store.add("gone", 1)
                return
            yield name
    except DistError as error:
        raise UserError(f"The first machine, {rendezvous}, is gone: {str(error).splitlines()[0]}") from None
