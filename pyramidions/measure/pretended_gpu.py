"""Runs a model without computing anything, the way that a GPU would run it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

_META = torch.device("meta")
_READS_DEVICE = Tensor.device.__get__


@contextmanager
def pretended_gpu() -> Iterator[None]:
    """Keep new tensors on the meta device: they have a shape but no memory, and operators compute nothing.

    Tensors say that they are on a GPU, so that code which asks takes the GPU's path. Attention is fused and dropout
    keeps a mask of bytes, as they are there: without this, the meta device would take slower paths that keep more.
    """
    with _META, _LikeAGpu():
        yield


class _LikeAGpu(TorchFunctionMode):
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func == _READS_DEVICE:
            return torch.device("cuda", 0)
        args = tuple(_META if isinstance(value, torch.device) else value for value in args)
        kwargs = {name: _META if name == "device" else value for name, value in (kwargs or {}).items()}
        if func is F.scaled_dot_product_attention:
            return _fused_attention(*args, **kwargs)
        if func is F.dropout:
            return _dropout(*args, **kwargs)
        return func(*args, **kwargs)


def _fused_attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False
) -> Tensor:
    """Attend without holding the weights; the kernel drops some of them without keeping a mask."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.empty_like(attn_mask, dtype=q.dtype)
    # torch has one such operator for each device. The CPU's keeps no more than it must: a GPU's may pad.
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    mixed: Tensor = fused(q, k, v, 0.0, is_causal, attn_mask=attn_mask)[0]
    return mixed


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.native_dropout(input, p, training)[0]
