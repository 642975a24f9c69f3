"""Plans by torch's fused kernels, as a GPU computes them."""

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.nn.functional.chunking import chunked, look_around, look_back
from pyramidions.nn.functional.tiles import Band, Blocks, Plan, Tile

#: attends from a tile's queries to its keys and values, with dropout
Attend = Callable[[Tensor, list[Tensor], list[Tensor], float], Tensor]


def fused_pieces(plan: Plan, q: Tensor) -> Iterator[tuple[Tile, Attend]] | None:
    """Return how fused kernels compute a plan, with gradients, piece by piece; None if they cannot."""
    if isinstance(plan, Band):
        return _by_chunks(plan)
    return _by_blocks(plan, q) if isinstance(plan, Blocks) else None


def _by_blocks(plan: Blocks, q: Tensor) -> Iterator[tuple[Tile, Attend]]:
    for tile in plan.tiles(q.shape, on_gpu=True):
        allowed = plan.allowed[tile.lead[0], None, None]

        def attend(q: Tensor, k: list[Tensor], v: list[Tensor], dropout: float, allowed: Tensor = allowed) -> Tensor:
            # Fused kernels want heads: (N, M, E) -> (N, 1, M, E)
            rows, keys, values = (x[:, None] for x in (q, *k, *v))
            return F.scaled_dot_product_attention(rows, keys, values, allowed, dropout).squeeze(1)

        yield tile, attend


def _by_chunks(plan: Band) -> Iterator[tuple[Tile, Attend]]:
    everything = (slice(None),)
    places = (everything,) * (2 if plan.absent is not None and plan.absent.size(1) else 1)
    yield Tile(everything, slice(None), slice(None), places), lambda *given: _attend_in_chunks(plan, *given)


def _attend_in_chunks(plan: Band, q: Tensor, k: list[Tensor], v: list[Tensor], dropout: float) -> Tensor:
    """Chunks of as many positions as a window reaches see themselves and their neighbours, or the one before."""
    batch, _, length, _ = q.shape
    window, look = plan.reach, look_around if plan.ahead else look_back
    count = -(-length // window)

    def in_chunks(x: Tensor) -> Tensor:
        # (B, H, L, E) -> (B, C, H, M, E)
        return chunked(x, window, dim=2).transpose(1, 2)

    def beside(near: Tensor, *far: Tensor) -> Tensor:
        # (B, H, L, E) and (B, H, G, E) -> (B, C, H, S + G, E), where S is 3M, or 2M
        return torch.cat(
            [look(in_chunks(near), chunks=-4), *(x[:, None].expand(-1, count, -1, -1, -1) for x in far)], dim=3
        )

    blocked = chunked(plan.hidden, window, dim=1, value=True)[..., None]
    # (B, C, M, 1) -> (B, C, 1, S)
    blocked = look(blocked, value=True).transpose(2, 3)
    distance = torch.arange(blocked.size(3), device=q.device) - window
    distance = distance - torch.arange(window, device=q.device)[:, None]  # key minus query, (M, S)
    near = distance.abs() <= window
    near = near if plan.ahead else near & (distance <= 0)
    allowed = (near if plan.sees_itself else near & (distance != 0)) & ~blocked
    own = distance == 0
    if plan.absent is not None:
        # (B, C, M, S) and (B, G) -> (B, C, M, S + G)
        allowed = torch.cat([allowed, ~plan.absent[:, None, None].expand(-1, count, window, -1)], dim=3)
        own = F.pad(own, (0, plan.absent.size(1)))
    # A query that sees nothing sees its own position: where that is padding, nobody reads the result.
    allowed = allowed | (own & ~allowed.any(dim=-1, keepdim=True))
    # (B, C, H, M, E) -> (BC, H, M, E), and (B, C, M, .) -> (BC, 1, M, .): fused kernels know no fifth dimension.
    rows, keys, values = (x.flatten(0, 1) for x in (in_chunks(q), beside(*k), beside(*v)))
    allowed = allowed.flatten(0, 1)[:, None]
    out = F.scaled_dot_product_attention(rows, keys, values, attn_mask=allowed, dropout_p=dropout)
    # (BC, H, M, E) -> (BC, M, H, E) -> (B, CM, H, E) -> (B, H, L, E)
    return out.transpose(1, 2).unflatten(0, (batch, -1)).flatten(1, 2).transpose(1, 2)[:, :, :length]
