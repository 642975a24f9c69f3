"""Attention within a window: chunk by chunk on a GPU, tile by tile on the CPU."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.flop_counter import register_flop_formula

from pyramidions.nn.functional.attention import scaled_dot_product_attention
from pyramidions.nn.functional.chunking import pad_to_multiple
from pyramidions.nn.functional.dropout import drawn_from, new_seed
from pyramidions.nn.functional.window_tiles import Windowed, attend_in_tiles, gradients_in_tiles, received_in_tiles


def look_around(x: Tensor, value: float | bool = 0.0, chunks: int = -3) -> Tensor:
    """Join every chunk with the one before and the one after: (..., C, M, E) -> (..., C, 3M, E).

    Before the first and after the last chunk stands ``value``; ``chunks`` is the dimension C, counted from the end.
    """
    return torch.cat([_shifted(x, 1, value, chunks), x, _shifted(x, -1, value, chunks)], dim=-2)


def look_back(x: Tensor, value: float | bool = 0.0) -> Tensor:
    """Join every chunk with the one before: (..., C, M, E) -> (..., C, 2M, E); ``value`` before the first."""
    return torch.cat([_shifted(x, 1, value, -3), x], dim=-2)


def _shifted(x: Tensor, by: int, value: float | bool, chunks: int) -> Tensor:
    # F.pad with a negative width crops: chunks move by one place
    return F.pad(x, [0, 0] * (-chunks - 1) + [by, -by], value=value)


class Further(NamedTuple):
    """Keys that every query sees, beside those within its window.

    Attributes:
        k: (B, H, G, E).
        v: (B, H, G, E).
        absent: (B, G), True where a document has no such key.
    """

    k: Tensor
    v: Tensor
    absent: Tensor


def local_window_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    padding_mask: Tensor,
    window: int,
    dropout: float = 0.0,
    *,
    sees_itself: bool = True,
    further: Further | None = None,
) -> Tensor:
    """Attend to the keys at most ``window`` positions away (Rae and Razavi 2020; Beltagy et al. 2020, section 3.1).

    Memory grows linearly with the length. For the backward pass only the arguments are kept: it computes the weights
    again.

    Args:
        q: (B, H, L, E).
        k: (B, H, L, E).
        v: (B, H, L, E).
        padding_mask: (B, L), True at padding, and at other keys that no window shows.
        window: how far a query sees in either direction, at least 1.
        dropout: probability of dropping an attention weight.
        sees_itself: a query sees its own position; without, it does only where it sees nothing else.
        further: keys that every query sees, or None.

    Returns:
        (B, H, L, E).
    """
    if further is None:
        further = Further(k[:, :, :0], v[:, :, :0], padding_mask[:, :0])
    # A seed, instead of a mask that is as large as the matrix of weights.
    seed = new_seed() if dropout and not q.is_meta else 0
    out: Tensor = _LocalWindow.apply(q, k, v, *further, padding_mask, window, dropout, sees_itself, seed)
    return out


def received_in_window(
    q: Tensor, k: Tensor, hidden: Tensor, left_out: Tensor, window: int, further: Further
) -> tuple[Tensor, Tensor]:
    """Return how much attention keys receive in `local_window_attention`, over all heads and queries.

    Args:
        q: (B, H, L, E).
        k: (B, H, L, E).
        hidden: (B, L), True at keys that no window shows.
        left_out: (B, L), True at queries that do not count.
        window: how far a query sees in either direction.
        further: keys that every query sees.

    Returns:
        (B, L), of keys within windows, and (B, G), of the further ones, in float32.
    """
    return received_in_tiles(q, k, further.k, further.absent, hidden, left_out, window)


def computes_in_tiles(x: Tensor) -> bool:
    """Say whether attention from ``x`` is computed in tiles; a GPU has fused kernels for chunks."""
    return x.device.type == "cpu"


class _LocalWindow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *tensors, window, dropout, sees_itself, seed = given
        ctx.save_for_backward(*tensors)
        ctx.options = window, dropout, sees_itself, seed
        out: Tensor = torch.ops.pyramidions.local_window(*given)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        compute = gradients_in_tiles if computes_in_tiles(grad) else _gradients_in_chunks
        return *compute(grad, Windowed(*ctx.saved_tensors, *ctx.options)), None, None, None, None, None, None


@torch.library.custom_op("pyramidions::local_window", mutates_args=())
def _local_window(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    further_k: Tensor,
    further_v: Tensor,
    absent: Tensor,
    padding_mask: Tensor,
    window: int,
    dropout: float,
    sees_itself: bool,
    seed: int,
) -> Tensor:
    """An operator of its own, so that who counts multiplications sees the same on all devices."""
    attend = attend_in_tiles if computes_in_tiles(q) else attend_in_chunks
    return attend(Windowed(q, k, v, further_k, further_v, absent, padding_mask, window, dropout, sees_itself, seed))


@_local_window.register_fake
def _shape_alone(q: Tensor, *rest: Any) -> Tensor:
    return torch.empty_like(q)


@register_flop_formula(torch.ops.pyramidions.local_window, get_raw=True)
def _operations(q: Tensor, *rest: Any, **__: Any) -> int:
    """Return the operations where chunks see their neighbours, and the further keys, as on a GPU."""
    _, _, further_k, _, _, _, window, *_ = rest
    batch, heads, length, dim = q.shape
    return 4 * batch * heads * (length + -length % window) * (3 * window + further_k.size(2)) * dim


def _gradients_in_chunks(grad: Tensor, given: Windowed) -> tuple[Tensor | None, ...]:
    with torch.enable_grad():
        inputs = {
            name: getattr(given, name).detach().requires_grad_() for name in ("q", "k", "v", "further_k", "further_v")
        }
        out = attend_in_chunks(given._replace(**inputs))
    return torch.autograd.grad(out, list(inputs.values()), grad, allow_unused=True)


def attend_in_chunks(given: Windowed) -> Tensor:
    """Attend as `local_window_attention`, with dropout that depends on the seed alone."""
    with drawn_from(given.seed, given.q.device, given.dropout):
        return _attend_in_chunks(given)


def _attend_in_chunks(given: Windowed) -> Tensor:
    """Chunks of as many positions as a window reaches see themselves and their neighbours."""
    q, k, v, further_k, further_v, absent, hidden, window, dropout, sees_itself, _ = given
    batch, _, length, _ = q.shape
    count = -(-length // window)

    def chunked(x: Tensor) -> Tensor:
        # (B, H, L, E) -> (B, C, H, M, E)
        return pad_to_multiple(x, window, dim=2).unflatten(2, (-1, window)).transpose(1, 2)

    def beside(near: Tensor, far: Tensor) -> Tensor:
        # (B, C, H, 3M, E) and (B, H, G, E) -> (B, C, H, 3M + G, E)
        return torch.cat([near, far[:, None].expand(-1, count, -1, -1, -1)], dim=3) if far.size(2) else near

    # (B, C, H, M, E) -> (B, C, H, 3M, E)
    keys, values = (look_around(chunked(x), chunks=-4) for x in (k, v))
    blocked = pad_to_multiple(hidden, window, dim=1, value=True).unflatten(1, (-1, window))[..., None]
    # (B, C, M, 1) -> (B, C, 1, 3M)
    blocked = look_around(blocked, value=True).transpose(2, 3)
    distance = torch.arange(3 * window, device=q.device) - window
    distance = distance - torch.arange(window, device=q.device)[:, None]  # key minus query, (M, 3M)
    near = distance.abs() <= window
    allowed = (near if sees_itself else near & (distance != 0)) & ~blocked
    # (B, C, M, 3M) and (B, G) -> (B, C, M, 3M + G)
    allowed = torch.cat([allowed, ~absent[:, None, None].expand(-1, count, window, -1)], dim=3)
    # A query that sees nothing sees its own position: where that is padding, nobody reads the result.
    own = F.pad(distance == 0, (0, absent.size(1)))
    allowed = allowed | (own & ~allowed.any(dim=-1, keepdim=True))
    # (B, C, H, M, E) -> (BC, H, M, E), and (B, C, M, .) -> (BC, 1, M, .): fused kernels know no fifth dimension.
    queries, keys, values = (x.flatten(0, 1) for x in (chunked(q), beside(keys, further_k), beside(values, further_v)))
    out = scaled_dot_product_attention(queries, keys, values, allowed.flatten(0, 1)[:, None], dropout)
    # (BC, H, M, E) -> (BC, M, H, E) -> (B, CM, H, E) -> (B, H, L, E)
    return out.transpose(1, 2).unflatten(0, (batch, -1)).flatten(1, 2).transpose(1, 2)[:, :, :length]
