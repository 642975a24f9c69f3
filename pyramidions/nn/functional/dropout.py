"""Fast dropout on the CPU: four 16-bit Bernoulli samples per random integer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_SIDES = 2**16  # values of a 16-bit sample; a 64-bit random integer has four of them


def new_seed() -> int:
    """Draw a seed from torch's generator of the host, so that `torch.manual_seed` decides it; no GPU is waited for."""
    return int(torch.randint(2**62, (1,), device="cpu").numpy()[0])


@contextmanager
def drawn_from(seed: int, device: torch.device, probability: float) -> Iterator[None]:
    """Draw from a seed what dropout drops on the host and a device; other draws do not notice."""
    if not probability:
        yield
        return
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def draws_bernoulli(x: Tensor) -> bool:
    """Say whether dropout of ``x`` draws `bernoulli_samples`; a GPU has kernels of its own."""
    return x.device.type == "cpu"


def bernoulli_samples(
    shape: torch.Size,
    probability: float,
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.bool,
) -> tuple[Tensor, float]:
    """Draw on the CPU for each value whether it is kept: 1 or 0; and the factor that keeps the mean.

    The probability is rounded to a multiple of 2 ** -16. To multiply by a mask of the values' type takes a fraction of
    the time of `masked_fill` with random places.
    """
    faces = min(round(probability * _SIDES), _SIDES - 1)
    numbers = torch.empty(-(-shape.numel() // 4), dtype=torch.int64, device="cpu")
    numbers.random_(-(2**63), None, generator=generator)
    kept = torch.empty(shape, dtype=dtype, device="cpu")
    torch.ge(numbers.view(torch.int16)[: shape.numel()].view(shape), faces - _SIDES // 2, out=kept)
    return kept, _SIDES / (_SIDES - faces)


class _BernoulliDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float) -> Tensor:
        kept, ctx.scale = bernoulli_samples(x.shape, probability)
        ctx.save_for_backward(kept)
        return (x * kept).mul_(ctx.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return (grad * kept).mul_(ctx.scale), None


def relu_dropped(x: Tensor, probability: float) -> tuple[Tensor, float]:
    """Return ``drop(relu(x), probability)`` without a gradient, and the factor that scales kept values."""
    if probability == 0.0:
        return x.relu(), 1.0
    if draws_bernoulli(x):
        kept, scale = bernoulli_samples(x.shape, probability, dtype=x.dtype)
        return x.clamp_min(0.0).mul_(kept).mul_(scale), scale
    # One kernel and a mask of bytes, which is freed at once: `F.dropout` in place holds noise of x's type.
    return torch.native_dropout(x, probability, True)[0].clamp_min_(0.0), 1 / (1 - probability)


class _ReluDropout(torch.autograd.Function):
    """Keeps only its output, which the next layer keeps anyway: where it is zero, so is the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float) -> Tensor:
        out, ctx.scale = relu_dropped(x, probability)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (out,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(grad, out, 0.0).mul_(ctx.scale), None


def drop(x: Tensor, probability: float) -> Tensor:
    """Drop values of ``x`` with ``probability``, and scale the others to keep the mean (Srivastava et al. 2014).

    On the CPU the probability is rounded to a multiple of 2 ** -16.
    """
    if probability == 0.0:
        return x
    return _BernoulliDropout.apply(x, probability) if draws_bernoulli(x) else F.dropout(x, probability)


def relu_drop(x: Tensor, probability: float) -> Tensor:
    """Return ``drop(relu(x), probability)``, keeping less for the backward pass."""
    return x.relu() if probability == 0.0 else _ReluDropout.apply(x, probability)


class Dropout(nn.Module):
    """`drop` while training."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the shape of ``x``."""
        return drop(x, self.probability) if self.training else x
