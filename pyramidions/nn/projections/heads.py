"""From vectors to heads and back."""

from torch import Tensor


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, L, D) -> (B, H, L, E)."""
    batch, length, width = x.shape
    return x.view(batch, length, num_heads, width // num_heads).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(B, H, L, E) -> (B, L, D)."""
    return x.transpose(1, 2).flatten(2)


def check_heads(embed_dim: int, num_heads: int) -> None:
    """Refuse heads that do not share the width evenly.

    Raises:
        ValueError: ``embed_dim`` is not divisible by ``num_heads``.
    """
    if num_heads < 1 or embed_dim % num_heads:
        raise ValueError(f"`embed_dim` ({embed_dim}) must be divisible by `num_heads` ({num_heads}).")
