"""A linear recurrence over a sequence, computed for all positions in a logarithmic number of rounds."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def linear_recurrence(decay: Tensor, new: Tensor, before: Tensor | None = None) -> Tensor:
    """Return c, where c_t = decay_t * c_(t-1) + new_t (Blelloch 1990, section 1.4): (B, L, D) twice -> (B, L, D).

    Pairs of neighbours are joined in rounds. Each round doubles how far a position sees (Hillis and Steele 1986).
    Only products of decays, from 0 to 1, are formed, no quotients: nothing overflows or loses digits. ``before`` is the
    value (B, D) before the first position, or None for zeros.
    """
    if before is not None:
        new = torch.cat([new[:, :1] + decay[:, :1] * before[:, None], new[:, 1:]], dim=1)
    return _LinearRecurrence.apply(decay, new)


class _LinearRecurrence(torch.autograd.Function):
    """Keeps decays and results; the gradients are the same recurrence backwards."""

    @staticmethod
    def forward(ctx: Any, decay: Tensor, new: Tensor) -> Tensor:
        summed = _scan(decay, new)
        ctx.save_for_backward(decay, summed)
        return summed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        decay, summed = ctx.saved_tensors
        # The gradient of c_t is that of its own output, and what decays on the way to c_(t+1).
        later = torch.cat([decay[:, 1:], torch.zeros_like(decay[:, :1])], dim=1)
        of_new = _scan(later.flip(1), grad.flip(1)).flip(1)
        earlier = torch.cat([torch.zeros_like(summed[:, :1]), summed[:, :-1]], dim=1)
        return of_new * earlier, of_new


def _scan(decay: Tensor, new: Tensor) -> Tensor:
    reach, length = 1, new.size(1)
    while reach < length:
        new = torch.cat([new[:, :reach], torch.addcmul(new[:, reach:], decay[:, reach:], new[:, :-reach])], dim=1)
        decay = torch.cat([decay[:, :reach], decay[:, reach:] * decay[:, :-reach]], dim=1)
        reach *= 2
    return new
