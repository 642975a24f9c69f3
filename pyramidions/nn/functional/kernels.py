"""Which kernels a GPU runs, and idle time that it need not have: waiting for the host, plans of cuDNN's attention."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Annotated

import torch
from torch import Tensor, nn

from pyramidions.base.arguments import OneOf

#: How a GPU computes windows: by torch's fused kernels in chunks, or by FlexAttention.
KERNELS = AUTO, FLEX = "auto", "flex"
Kernels = Annotated[str, OneOf(KERNELS)]

_lock = threading.Lock()
_inside = 0  # threads that are in the context
_usual = True  # the setting before the first entered


def waits_for_host(x: Tensor) -> bool:
    """Say whether the device of ``x`` waits for Python to start its kernels, where they are small: any but the CPU."""
    return x.device.type != "cpu"


def on_device(numbers: Sequence[int], device: torch.device) -> Tensor:
    """Return ``numbers`` on a device, without waiting for its earlier work."""
    return torch.tensor(numbers, dtype=torch.long, device="cpu").to(device, non_blocking=True)


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Keep attention from cuDNN, which plans its kernels again for each number of keys.

    A plan takes tens of milliseconds on the host, and a decoder has one more key at each step. The switch belongs to
    the process: the last of several threads to leave restores it.
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


def use_kernels(model: nn.Module, kernels: str) -> None:
    """Have the windows of a model computed by ``kernels``; ValueError for FLEX if no part of it can."""
    windows = [module for module in model.modules() if hasattr(module, "window_kernels")]
    if kernels == FLEX and not windows:
        raise ValueError(
            f"`kernels` {FLEX!r} is for attention by sliding_window or strided(split_heads=True), but the model has "
            "none."
        )
    for module in windows:
        module.window_kernels = kernels  # type: ignore[assignment]
