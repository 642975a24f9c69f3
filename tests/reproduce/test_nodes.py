import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from reproduce_meeting import rendezvous

from pyramidions.errors import UserError
from pyramidions.reproduce.nodes import Leader, address, leading, trainings

SOON = timedelta(seconds=20)  # rather than the two weeks after which the others would give up


def test_others_hear_every_training_and_that_it_is_over() -> None:
    meeting = rendezvous()
    with ThreadPoolExecutor(2) as pool:
        heard = [pool.submit(list, trainings(meeting, SOON)) for _ in range(2)]
        with leading(meeting, 2, lambda line: None) as leader:
            leader.announce("arxiv/one")
            leader.announce("arxiv/two")
        assert [h.result(timeout=20) for h in heard] == [["arxiv/one", "arxiv/two"]] * 2


def test_when_the_first_machine_fails_the_others_are_dismissed() -> None:
    meeting = rendezvous()
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(list, trainings(meeting, SOON))
        with pytest.raises(RuntimeError, match="broken"), leading(meeting, 1, lambda line: None):
            raise RuntimeError("broken")
        assert heard.result(timeout=20) == []


def test_a_machine_that_joins_late_begins_with_the_next_training() -> None:
    meeting = rendezvous()
    leader = Leader(meeting, 1)
    leader.announce("missed")
    with ThreadPoolExecutor(1) as pool:
        heard = pool.submit(list, trainings(meeting, SOON))
        leader.gather(lambda line: None)
        leader.announce("heard")
        leader.dismiss()
        assert heard.result(timeout=20) == ["heard"]


def test_a_port_that_is_taken_is_refused() -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1] - 1
        with pytest.raises(UserError, match=f"two free ports, but is 127.0.0.1:{port}: "):
            Leader(f"127.0.0.1:{port}", 1)


def test_when_the_first_machine_is_not_there_the_others_say_so() -> None:
    with pytest.raises(UserError, match="The first machine, 127.0.0.1:9, is gone: "):
        list(trainings("127.0.0.1:9", timedelta(seconds=1)))


@pytest.mark.parametrize("text", ["host", "host:", ":29500", "host:0", "host:65535", "host:http"])
def test_a_rendezvous_has_a_host_and_a_port(text: str) -> None:
    with pytest.raises(UserError, match="--rendezvous must be HOST:PORT with a port from 1 to 65534"):
        address(text)
    assert address("host:29500") == ("host", 29500)
