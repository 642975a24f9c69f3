"""Blockwise attention that also reads averages over the whole document, beside a plain reference."""

import pytest
import torch
from small_parts import DIM, HEADS, ends_after, vectors
from torch import Tensor

from pyramidions.nn.attention import ATTENTION, PooledBlockwiseAttention, SelfAttention
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import LayerContext


def made(**options: int) -> SelfAttention:
    torch.manual_seed(0)
    attention = ATTENTION.build("pooled_blockwise", options, embed_dim=DIM, num_heads=HEADS, dropout=0.0)
    return SelfAttention(DenseProjections(DIM, HEADS), attention).eval()


def attended(projections: DenseProjections, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Attention of one document (L, D) to keys and values (K, D) that are already projected."""
    heads = [x.unflatten(1, (HEADS, -1)).transpose(0, 1) for x in (projections.q_proj(x), keys, values)]
    q, k, v = heads
    mixed = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1) @ v
    assert projections.out_proj is not None and projections.k_proj is not None
    return projections.out_proj(mixed.transpose(0, 1).flatten(1))


def average(x: Tensor, scores: Tensor, places: list[int]) -> Tensor:
    return (x[places] * scores[places]).sum(0) / scores[places].sum()


def naive(layer: SelfAttention, x: Tensor) -> Tensor:
    """One document without padding, (L, D): blocks, then one average after the other."""
    kind, first = layer.attention, layer.projections
    assert isinstance(kind, PooledBlockwiseAttention) and isinstance(first, DenseProjections)
    second, size = kind.projections, kind.within_blocks.block_size
    assert first.k_proj is not None and second.k_proj is not None
    near = torch.cat([attended(first, block, first.k_proj(block), first.v_proj(block)) for block in x.split(size)])
    keys, values = second.k_proj(near), second.v_proj(near)
    places = [range(start, start + kind.window) for start in range(-kind.padding, len(x), kind.stride)]
    if kind.scorer is not None:
        scores = kind.scorer(near).sigmoid()
        k, v = (
            torch.stack([average(each, scores, [i for i in inside if 0 <= i < len(x)]) for inside in places])
            for each in (keys, values)
        )
        return near + attended(second, near, k, v)
    # Positions outside of the document count as zeros.
    k, v = (
        torch.stack([each[[i for i in inside if 0 <= i < len(x)]].sum(0) / kind.window for inside in places])
        for each in (keys, values)
    )
    return near + attended(second, near, k, v)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(
    ("length", "window", "stride", "padding"),
    [(1, 18, 12, 9), (4, 4, 4, 0), (5, 3, 2, 1), (13, 5, 3, 4), (13, 1, 1, 0), (40, 18, 12, 9)],
)
@torch.no_grad()
def test_the_output_of_the_blocks_reads_averages_over_the_document_whatever_the_padding(
    length: int, window: int, stride: int, padding: int, learned: bool
) -> None:
    layer = made(block_size=4, window=window, stride=stride, padding=padding, learned=learned)
    x = vectors(3, length + 20, DIM)
    found = layer(x, LayerContext(ends_after(length + 20, length, 0)))
    assert found.isfinite().all()
    for row, real in enumerate((length + 20, length)):
        torch.testing.assert_close(found[row, :real], naive(layer, x[row, :real]), rtol=0, atol=1e-5)
        alone = layer(x[row : row + 1, :real], LayerContext())[0]
        torch.testing.assert_close(alone, found[row, :real], rtol=0, atol=1e-5)
