"""Computing in float32 where half precision would lose what decides."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def full_type(dtype: torch.dtype) -> torch.dtype:
    """Return the type in which weights are computed, sums taken and decisions made: float32 or wider."""
    return torch.promote_types(dtype, torch.float32)


def full_precision(x: Tensor) -> Tensor:
    """Convert ``x`` to `full_type` of its type."""
    return x.to(full_type(x.dtype))


def project(layer: nn.Linear, x: Tensor) -> Tensor:
    """Apply ``layer`` in the precision of ``x``."""
    return F.linear(x, layer.weight.to(x.dtype), None if layer.bias is None else layer.bias.to(x.dtype))
