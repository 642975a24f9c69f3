"""One of N by argmax, and hidden units that are masked by such a choice."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pyramidions.nn.functional.dropout import relu_dropped
from pyramidions.nn.functional.precision import full_type
from pyramidions.nn.functional.replay import replayed

_EDGE = 1e-6  # uniform noise keeps so far from 0 and 1


def choose(logits: Tensor, temperature: float = 0.0) -> Tensor:
    """Return which of N choices has the greatest logit, (..., N) -> (...); a recomputation repeats it.

    The ``temperature`` is a factor of the standard Gumbel noise that is added to the logits first.
    """
    noise = torch.rand(logits.shape, device=logits.device, dtype=full_type(logits.dtype)) if temperature else None

    def best() -> Tensor:
        if noise is None:
            return logits.argmax(dim=-1)
        # Minus the noise of Gumbel.
        minus = noise.clamp_(_EDGE, 1 - _EDGE).log_().neg_().log_()
        return torch.sub(logits, minus, alpha=temperature).argmax(dim=-1)

    return replayed(best, logits.size(-1))


def gated_relu(hidden: Tensor, logits: Tensor, chosen: Tensor | None, dropout: float = 0.0) -> Tensor:
    """Return ``drop(relu(hidden * mask), dropout)``.

    The mask is the softmax p of the logits, or one-hot where a choice was made, with the gradient of p
    (straight-through). Masked units get no gradient through the ReLU; they reach the logits only through the softmax.

    Of B blocks of N choices with M units each: ``hidden`` (T, B, N, M), ``logits`` (T, B, N), and what is ``chosen``
    (T, B), or None for the softmax.
    """
    return _GatedRelu.apply(hidden, logits, chosen, dropout)


class _GatedRelu(torch.autograd.Function):
    """Keeps p and its output, which the next layer keeps anyway, whether a choice was made or not.

    What the mask multiplies need not be kept: the gradient of a mask's value times that value is the output times the
    output's gradient.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, logits: Tensor, chosen: Tensor | None, dropout: float) -> Tensor:
        p = logits.softmax(dim=-1, dtype=full_type(logits.dtype)).to(hidden.dtype)
        if chosen is None:
            out, ctx.scale = relu_dropped(hidden * p[..., None], dropout)
        else:
            # (T, B) -> (T, B, 1, M)
            place = chosen[..., None, None].expand(-1, -1, 1, hidden.size(-1))
            one, ctx.scale = relu_dropped(hidden.gather(2, place), dropout)
            out = torch.zeros_like(hidden).scatter_(2, place, one)
        ctx.save_for_backward(p, out)
        ctx.soft, ctx.types = chosen is None, (hidden.dtype, logits.dtype)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        p, out = ctx.saved_tensors
        of_hidden = torch.ops.aten.threshold_backward(grad, out, 0.0)
        if ctx.scale != 1:
            of_hidden = of_hidden.mul_(ctx.scale)
        # mask * its gradient: (T, B, N, M) -> (T, B, N)
        pulled = (out * grad).sum(dim=-1, dtype=full_type(out.dtype))
        if ctx.soft:
            of_hidden = of_hidden.mul_(p[..., None])
        else:
            # p * the gradient of the one-hot mask
            pulled = pulled.mul_(p)
        of_logits = torch.addcmul(pulled, p.to(pulled.dtype), pulled.sum(dim=-1, keepdim=True), value=-1)
        return of_hidden.to(ctx.types[0]), of_logits.to(ctx.types[1]), None, None
