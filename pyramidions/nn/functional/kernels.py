"""What a GPU is spared: waiting for the host, and plans that are made for one step."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


def on_device(numbers: Sequence[int], device: torch.device) -> Tensor:
    """Return ``numbers`` on a device, without waiting until it has done all that it was given before."""
    return torch.tensor(numbers, dtype=torch.long).to(device, non_blocking=True)


@contextmanager
def without_cudnn() -> Iterator[None]:
    """Keep attention from cuDNN, whose kernels are planned anew for each number of keys.

    A plan takes tens of milliseconds of the host; a decoder has one key more at each step.
    """
    enabled = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(enabled)
