"""Windows by FlexAttention, which a GPU runs as kernels that torch compiles for a mask."""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from warnings import warn

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from pyramidions.nn.functional.kernels import AUTO, FLEX
from pyramidions.nn.functional.tiles import Band

_BLOCK = 128  # positions of a block: kernels skip blocks of keys that no query of a block sees
# Dimensions of a head, at least, and their bytes, at most, where a block must fit into the fast memory of any GPU; and
# the compute capability.
_NARROWEST, _WIDEST, _OLDEST = 16, 256, (8, 0)
_MOST_GRAPHS = 64  # compiled in a process: few differ in more than numbers, but torch allows 8


def takes_flex(q: Tensor, plan: Band, dropout: float) -> bool:
    """Say whether FlexAttention computes a plan: on a GPU, where no weight is dropped."""
    if not plan.sees_itself or dropout or q.device.type == "meta":
        return False
    return _has_kernels(q.device, q.dtype, q.size(-1))


@cache
def _has_kernels(device: torch.device, dtype: torch.dtype, head_dim: int) -> bool:
    """Say whether a device has the kernels; warn once, if it has not."""
    if device.type != "cuda":
        reason = f"the device is {str(device)!r}"
    elif torch.cuda.get_device_capability(device) < _OLDEST:
        reason = f"{torch.cuda.get_device_name(device)} is too old"
    elif find_spec("triton") is None:
        reason = "triton is not installed"
    elif dtype == torch.float64 or head_dim < _NARROWEST or head_dim * dtype.itemsize > _WIDEST:
        reason = f"no kernel reads {dtype} in heads of {head_dim} dimensions"
    else:
        return True
    warn(f"`kernels` {FLEX!r} is for GPUs, but {reason}: windows are computed as by {AUTO!r}.", stacklevel=2)
    return False


def flex_window(q: Tensor, k: Tensor, v: Tensor, plan: Band) -> Tensor:
    """Attend to a band of keys and further ones: (B, H, L, E) three times -> (B, H, L, E)."""
    length = q.size(2)
    q, k, v = (_in_blocks(x) for x in (q, k, v))
    hidden = F.pad(plan.hidden, (0, k.size(2) - length), value=True)
    if plan.absent is not None and plan.further_k is not None and plan.further_v is not None:
        k, v = (torch.cat([near, _in_blocks(far)], dim=2) for near, far in ((k, plan.further_k), (v, plan.further_v)))
        absent = F.pad(plan.absent, (0, -plan.absent.size(1) % _BLOCK), value=True)
        hidden = torch.cat([hidden, absent], dim=1)
    if not q.is_cuda:
        return _attend(q, k, v, hidden, plan.reach, plan.ahead)[:, :, :length]
    # Beyond the limit torch would hold all scores; with `fullgraph` it says so.
    with torch._dynamo.config.patch(recompile_limit=_MOST_GRAPHS):
        return _compiled()(q, k, v, hidden, plan.reach, plan.ahead)[:, :, :length]


@cache
def _compiled() -> Callable[..., Tensor]:
    return torch.compile(_attend, fullgraph=True)


def _attend(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, reach: int, ahead: bool) -> Tensor:
    # The mask is made in here: torch compiles anew for each function that it is given.
    mixed = flex_attention(q, k, v, block_mask=band_mask(hidden, q.size(2), reach, ahead))
    assert isinstance(mixed, Tensor)
    return mixed


def band_mask(hidden: Tensor, length: int, reach: int, ahead: bool) -> BlockMask:
    """Return which keys queries see: those near them, themselves, and all further ones that are not hidden.

    Args:
        hidden: (B, L + G), True at keys that nobody sees but their own query; both numbers are whole blocks.
        length: L, queries, and the keys that stand where they do.
        reach: how far a query sees.
        ahead: it sees later positions, too.
    """

    def seen(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        distance = query - key
        near = distance.abs() <= reach
        near = near if ahead else near & (distance >= 0)
        return (distance == 0) | ((near | (key >= length)) & ~hidden[batch, key])

    rows = torch.arange(length // _BLOCK, device=hidden.device)[:, None]
    columns = torch.arange(hidden.size(1) // _BLOCK, device=hidden.device)
    further, away = columns >= length // _BLOCK, (rows - columns) * _BLOCK
    # Of the queries and keys of two blocks, the nearest and the furthest are so far apart.
    closest, widest = away.abs() - (_BLOCK - 1), away.abs() + (_BLOCK - 1)
    some, every = closest <= reach, widest <= reach
    if not ahead:
        some, every = some & (away >= 0), every & (away > 0)
    # (B, L + G) -> (B, 1, 1, N)
    blocked = hidden.unflatten(1, (-1, _BLOCK))[:, None, None]
    every = (every | further) & ~blocked.any(dim=-1)
    some = (some | further) & ~every & (~blocked.all(dim=-1) | (away == 0))
    return BlockMask.from_kv_blocks(*_listed(some), *_listed(every), BLOCK_SIZE=_BLOCK, mask_mod=seen)


def _listed(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many blocks of keys each block of queries has, and their numbers in front: (B, 1, N, S)."""
    counts = blocks.sum(dim=-1, dtype=torch.int32)
    return counts, blocks.byte().argsort(dim=-1, descending=True, stable=True).int()


def _in_blocks(x: Tensor) -> Tensor:
    # (B, H, L, E) -> whole blocks. Other strides would be compiled for anew.
    over = -x.size(2) % _BLOCK
    return F.pad(x, (0, 0, 0, over)) if over else x.contiguous()
