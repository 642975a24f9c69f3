"""The switch that keeps attention from cuDNN, and indices that the host sends ahead."""

import threading
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from pyramidions.nn.functional.kernels import in_evaluation_without_cudnn_attention, on_device, without_cudnn_attention

enabled = torch.backends.cuda.cudnn_sdp_enabled


@pytest.fixture(autouse=True, params=[True, False])
def usual(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Return what the switch is, and leave it as it was."""
    before = enabled()
    torch.backends.cuda.enable_cudnn_sdp(request.param)
    yield request.param
    torch.backends.cuda.enable_cudnn_sdp(before)


def test_it_is_off_inside_and_as_before_afterwards_whatever_happened(usual: bool) -> None:
    with without_cudnn_attention():
        with without_cudnn_attention():
            assert not enabled()
        assert not enabled()
    assert enabled() == usual
    with pytest.raises(KeyError), without_cudnn_attention():
        raise KeyError
    assert enabled() == usual


def test_of_several_threads_too_the_last_one_turns_it_back(usual: bool) -> None:
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with without_cudnn_attention():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=stay)
    with without_cudnn_attention():
        thread.start()
        assert entered.wait(10)
    assert not enabled()
    leave.set()
    thread.join()
    assert enabled() == usual


def test_a_module_that_trains_keeps_it(usual: bool) -> None:
    module = nn.Linear(1, 1)
    with in_evaluation_without_cudnn_attention(module.train()):
        assert enabled() == usual
    with in_evaluation_without_cudnn_attention(module.eval()):
        assert not enabled()


def test_numbers_arrive_as_they_are() -> None:
    found = on_device([3, 1, 2], torch.device("cpu"))
    assert found.tolist() == [3, 1, 2] and found.dtype == torch.long
    assert on_device([], torch.device("cpu")).shape == (0,)
    assert on_device([3, 1, 2], torch.device("meta")).device.type == "meta"
