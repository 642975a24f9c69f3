"""Positions of one residue next to each other, as documents of their own."""

from torch import Tensor

from pyramidions.nn.functional.chunking import chunked


def interleaved(x: Tensor, stride: int) -> Tensor:
    """Make each residue of the positions a document of its own: (B, H, L, E) -> (Bs, H, L/s, E)."""
    if stride == 1:
        return x
    return chunked(x, stride, dim=2).movedim(3, 1).flatten(0, 1)


def interleaved_mask(mask: Tensor, stride: int) -> Tensor:
    """Do so with a mask, True where a document has no further position: (B, L) -> (Bs, L/s)."""
    if stride == 1:
        return mask
    return chunked(mask, stride, dim=1, value=True).mT.flatten(0, 1)


def in_order(x: Tensor, stride: int, length: int) -> Tensor:
    """Undo `interleaved`: (Bs, H, L/s, E) -> (B, H, L, E)."""
    if stride == 1:
        return x
    return x.unflatten(0, (-1, stride)).movedim(1, 3).flatten(2, 3)[:, :, :length]


def in_window(away: Tensor, side: int, stride: int) -> Tensor:
    """Return which positions, so far ``away``, are among the ``side`` nearest ones of their residue."""
    return (away <= side * stride) & (away % stride == 0)


def check_dilation(dilation: int, dilated_heads: int) -> None:
    """Raise ValueError for a dilation without heads, or heads without a dilation."""
    if (dilation > 1) != (dilated_heads > 0):
        raise ValueError(
            f"`dilation` above 1 and `dilated_heads` above 0 need each other, but are {dilation} and {dilated_heads}."
        )


def head_groups(heads: int, dilated: int, dilation: int) -> list[tuple[slice, int]]:
    """Return the heads that see each position of their window, and the last ``dilated``, with the stride of each."""
    near = max(0, heads - dilated)
    groups = [(slice(0, near), 1), (slice(near, heads), dilation)]
    return [(group, stride) for group, stride in groups if group.start < group.stop]
