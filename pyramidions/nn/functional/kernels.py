"""Avoids what makes a GPU idle: synchronisation with the host, and cuDNN planning its attention anew."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

_lock = threading.Lock()
_inside = 0  # how many are in the context at this moment, of all threads
_usual = True  # what the first of them found


def on_device(numbers: Sequence[int], device: torch.device) -> Tensor:
    """Return ``numbers`` on a device, without waiting until it has done all that it was given before."""
    return torch.tensor(numbers, dtype=torch.long, device="cpu").to(device, non_blocking=True)


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Keep attention from cuDNN, whose kernels are planned anew for each number of keys.

    A plan takes tens of milliseconds of the host; a decoder has one key more at each step. The switch is the
    process's: of several threads the last one that leaves turns it back.
    """
    global _inside, _usual
    with _lock:
        if not _inside:
            _usual = torch.backends.cuda.cudnn_sdp_enabled()
            torch.backends.cuda.enable_cudnn_sdp(False)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                torch.backends.cuda.enable_cudnn_sdp(_usual)


def in_evaluation_without_cudnn_attention(module: nn.Module) -> AbstractContextManager[None]:
    """Return `without_cudnn_attention` for a module in evaluation mode; training sees few lengths, and plans pay."""
    return nullcontext() if module.training else without_cudnn_attention()
