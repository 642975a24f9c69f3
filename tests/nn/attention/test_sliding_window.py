"""Windows, dilation and global positions beside a naive form that holds the whole matrix of weights."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyramidions.nn.attention import GlobalRows, SelfAttention, SlidingWindowAttention
from pyramidions.nn.functional import attention
from pyramidions.nn.functional.attention import tiled_attention
from pyramidions.nn.functional.tiles import Band
from pyramidions.nn.marks import Marks
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import LayerContext

HEADS, DIM = 3, 12


def seen(length: int, side: int, dilation: int, marked: Tensor) -> Tensor:
    """Which key each query sees: a window, marked keys, and everything from marked queries. (L, L)."""
    distance = torch.arange(length)[:, None] - torch.arange(length)
    near = (distance.abs() <= side * dilation) & (distance % dilation == 0)
    return near | marked | marked[:, None]


def naive(q: Tensor, k: Tensor, padding: Tensor, marked: Tensor, kind: SlidingWindowAttention) -> Tensor:
    """Return the weights of one document: (H, L, E) x 2, (L,) x 2 -> (H, L, L)."""
    weights = []
    for head in range(len(q)):
        dilated = head >= len(q) - kind.dilated_heads
        allowed = seen(q.size(1), kind.side, kind.dilation if dilated else 1, marked) & ~padding
        allowed |= torch.eye(len(padding), dtype=torch.bool) & ~allowed.any(dim=1, keepdim=True)
        weights.append((q[head] @ k[head].T / q.size(-1) ** 0.5).masked_fill(~allowed, -torch.inf).softmax(dim=-1))
    return torch.stack(weights)


@settings(deadline=None, max_examples=60)
@given(st.data())
@pytest.mark.parametrize("in_tiles", [True, False])
def test_with_marks_it_equals_the_naive_form_and_so_do_gradients_and_what_is_received(
    in_tiles: bool, data: st.DataObject
) -> None:
    length, batch = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 3))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 9)))
    dilation = data.draw(st.integers(1, 4))
    kind = SlidingWindowAttention(
        2 * data.draw(st.integers(1, 12)), dilation, data.draw(st.integers(1, HEADS)) if dilation > 1 else 0
    )
    rate = data.draw(st.sampled_from([0.0, 0.2, 0.7]))
    padding = torch.rand(batch, length, generator=generator) < rate
    padding[:, data.draw(st.integers(0, length - 1))] = False
    marked = (torch.rand(batch, length, generator=generator) < data.draw(st.sampled_from([0.0, 0.1, 1.0]))) & ~padding
    marks = Marks(marked, int(marked.sum(dim=1).max()))
    q, k, v = (
        torch.randn(batch, HEADS, length, 4, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(3)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "computes_in_tiles", lambda x: in_tiles)
        mixed = kind(q, k, v, LayerContext(padding, marks=marks))
        mixed = marks.put(mixed, GlobalRows()(v, (q, k, v), marks, LayerContext(padding)))
        weights = torch.stack([naive(*each, kind) for each in zip(q, k, padding, marked, strict=True)])
        real = ~padding[:, None, :, None].expand_as(mixed)
        torch.testing.assert_close(mixed[real], (weights @ v)[real])
        grad = torch.randn(mixed.shape, generator=generator, dtype=torch.float64).masked_fill(~real, 0.0)
        found, expected = (torch.autograd.grad(out, (q, k, v), grad) for out in (mixed, weights @ v))
        torch.testing.assert_close(found, expected)
    rows = kind.received(q, k, LayerContext(padding, marks=marks)) + GlobalRows().received(
        v, q, k, marks, LayerContext(padding)
    )
    columns = weights.masked_fill(padding[:, None, :, None], 0.0).sum(dim=(1, 2)).masked_fill(padding, 0.0)
    torch.testing.assert_close(rows.double(), columns, rtol=0, atol=1e-4)


def test_a_causal_one_refuses_marks() -> None:
    x, marks = torch.randn(1, HEADS, 20, 4), Marks(torch.arange(20)[None] < 1, 1)
    with pytest.raises(ValueError, match="marks"):
        SlidingWindowAttention(4)(x, x, x, LayerContext(marks=marks, is_causal=True))


def test_nothing_as_large_as_the_square_of_the_length_is_kept_for_marks() -> None:
    largest = []
    for length in (2048, 4096):
        x = torch.randn(1, length, DIM, requires_grad=True)
        layer = SelfAttention(
            DenseProjections(DIM, HEADS),
            SlidingWindowAttention(64),
            global_rows=GlobalRows(DenseProjections(DIM, HEADS, joins_heads=False)),
        )
        first = torch.arange(length)[None] < 1
        kept: list[int] = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x, kept=kept: kept.append(x.numel()) or x, lambda x: x):
            layer(x, LayerContext(marks=Marks(first, 1)))
        largest.append(sum(kept))
    assert largest[1] < 2.1 * largest[0]


@pytest.mark.parametrize("in_tiles", [True, False])
def test_dropout_drops_weights_and_keeps_their_mean_beside_further_keys(
    in_tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attention, "computes_in_tiles", lambda x: in_tiles)
    q, k, v = (torch.randn(1, 1, 9, 4, generator=torch.Generator().manual_seed(n)) for n in range(3))
    padding = torch.zeros(1, 9, dtype=torch.bool)
    further = k[:, :, :1], v[:, :, :1], padding[:, :1]
    exact = tiled_attention(q, k, v, Band(padding, 2, True, True, *further))
    torch.manual_seed(0)
    many = [x.expand(6000, -1, -1, -1) for x in (q, k, v)]
    wide = (x.expand(6000, *[-1] * (x.dim() - 1)) for x in further)
    dropped = tiled_attention(*many, Band(padding.expand(6000, -1), 2, True, True, *wide), dropout=0.2)
    torch.testing.assert_close(dropped.mean(dim=0, keepdim=True), exact, rtol=0, atol=0.05)
    assert not dropped[0].allclose(dropped[1])


def test_tiles_are_cut_so_that_few_weights_are_in_memory() -> None:
    tiles = list(Band(torch.zeros(2, 3000, dtype=torch.bool), 512).tiles((2, 12, 3000, 4), on_gpu=False))
    assert len(tiles) == 2 * 2 * 47 and all(tile.span.stop - tile.span.start <= 64 + 2 * 512 for tile in tiles)
    assert all(tile.lead in [(n, heads) for n in (0, 1) for heads in (slice(0, 7), slice(7, 12))] for tile in tiles)
