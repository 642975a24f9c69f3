"""Decisions are kept in the smallest type, repeated in their order, and apart from those of other threads."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from pyramidions.nn.functional.replay import Decisions, forward_and_recomputation, replayed


def decide(*numbers: int, below: int = 256) -> list[int]:
    return replayed(lambda: torch.tensor(numbers), below).tolist()


@pytest.mark.parametrize(("below", "size"), [(256, 1), (257, 2), (2**15, 2), (2**15 + 1, 4), (2**31 + 1, 8)])
def test_decisions_are_kept_in_the_smallest_type_that_holds_them(below: int, size: int) -> None:
    made, largest = Decisions(), below - 1
    with made.recording():
        assert decide(0, largest, below=below) == [0, largest]
    assert made.nbytes == 2 * size
    with made.replaying():
        assert decide(1, 1, below=below) == [0, largest]


def test_each_recomputation_repeats_all_decisions_in_their_order() -> None:
    forward, recomputation = forward_and_recomputation()
    with forward:
        assert [decide(1), decide(2)] == [[1], [2]]
    for _ in range(2):
        with recomputation:
            assert [decide(3), decide(4)] == [[1], [2]]
    assert decide(5) == [5]


def test_a_recomputation_that_stops_early_ends_the_replay() -> None:
    forward, recomputation = forward_and_recomputation()
    with forward:
        decide(1)
    with pytest.raises(KeyError), recomputation:
        raise KeyError
    assert decide(2) == [2]


def test_a_further_decision_is_an_error() -> None:
    forward, recomputation = forward_and_recomputation()
    with forward:
        pass
    with recomputation, pytest.raises(RuntimeError, match="decide"):
        decide(1)


def test_threads_do_not_read_each_others_decisions() -> None:
    barrier = Barrier(2, timeout=10)

    def both_passes(number: int) -> list[int]:
        forward, recomputation = forward_and_recomputation()
        with forward:
            barrier.wait()
            decide(number)
            barrier.wait()
        with recomputation:
            barrier.wait()
            return decide(9)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(both_passes, [1, 2])) == [[1], [2]]


def test_decisions_take_no_gradient() -> None:
    x = torch.ones(2, requires_grad=True)
    assert not replayed(lambda: (x * 2).long(), 3).requires_grad
    seen: list[bool] = []
    replayed(lambda: (seen.append(torch.is_grad_enabled()), x.long())[1], 2)
    with Decisions().recording():
        replayed(lambda: (seen.append(torch.is_grad_enabled()), x.long())[1], 2)
    assert seen == [False, False]
