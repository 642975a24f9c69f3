"""Blockwise attention that also reads averages over the whole document, beside a plain reference."""

import torch
from small_parts import DIM, HEADS, ends_after, vectors
from tables import for_each
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn.attention import ATTENTION, PooledBlockwiseAttention, SelfAttention
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import LayerContext

WINDOWS = [(3, 2, 1), (4, 4, 0), (18, 12, 9), (5, 3, 4), (1, 1, 0)]


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
        torch.stack(
            [torch.stack([each[i] for i in inside if 0 <= i < len(x)]).sum(0) / kind.window for inside in places]
        )
        for each in (keys, values)
    )
    return near + attended(second, near, k, v)


@for_each("length", [1, 4, 5, 13, 40])
@for_each(("window", "stride", "padding"), WINDOWS)
@for_each("learned", [False, True])
@torch.no_grad()
def test_the_output_of_the_blocks_reads_averages_over_the_document_whatever_the_padding(
    length: int, window: int, stride: int, padding: int, learned: bool
) -> None:
    layer = made(block_size=4, window=window, stride=stride, padding=padding, learned=learned)
    x = vectors(2, length + 20, DIM)
    found = layer(x, LayerContext(ends_after(length + 20, length)))
    for row, real in enumerate((length + 20, length)):
        torch.testing.assert_close(found[row, :real], naive(layer, x[row, :real]), rtol=0, atol=1e-5)
    torch.testing.assert_close(layer(x[1:, :length], LayerContext())[0], found[1, :length], rtol=0, atol=1e-5)


@torch.no_grad()
def test_values_at_padding_never_change_what_is_read_and_a_document_of_padding_stays_finite() -> None:
    layer, x, mask = made(block_size=4), vectors(2, 30, DIM), ends_after(17, 0, width=30)
    before = layer(x, LayerContext(mask))
    assert before.isfinite().all()
    x[0, 17:] = 1e4
    assert layer(x, LayerContext(mask))[0, :17].equal(before[0, :17])


@torch.no_grad()
def test_it_reaches_from_the_last_block_to_the_first_and_each_option_changes_something() -> None:
    x = vectors(1, 60, DIM)
    other = x.clone()
    other[:, 0] += 1.0
    layer = made(block_size=8)
    assert not torch.allclose(layer(x, LayerContext())[:, -1], layer(other, LayerContext())[:, -1], atol=1e-6)
    outputs = [
        made(**{"block_size": 8, **options})(x, LayerContext())
        for options in ({}, {"block_size": 4}, {"window": 20}, {"stride": 10}, {"padding": 3}, {"learned": True})
    ]
    for place, one in enumerate(outputs):
        assert not any(torch.allclose(one, another, atol=1e-4) for another in outputs[:place])


def test_the_last_four_of_the_twelve_layers_of_bart_ls_read_the_whole_document() -> None:
    with torch.device("meta"):
        model = build(preset("bart_ls"), 1000)
    kinds = [layer.function(SelfAttention).attention for layer in model.encoder.layers]  # type: ignore[operator]
    assert [isinstance(kind, PooledBlockwiseAttention) for kind in kinds] == [False] * 8 + [True] * 4
    assert {(kind.window, kind.stride, kind.padding) for kind in kinds[8:]} == {(18, 12, 9)}
