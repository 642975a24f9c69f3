"""Attention in tiles, beside the plain form that holds the whole matrix of weights."""

import pytest
import torch
from torch import Tensor

from pyramidions.nn.functional import attention, tiles
from pyramidions.nn.functional.attention import scaled_dot_product_attention, tiled_attention
from pyramidions.nn.functional.dropout import bernoulli_samples
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.functional.tiles import Band, ByDistance, Dense


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "_WEIGHTS", 20)


def _noise(q: Tensor, k: Tensor, dropout: float, seed: int, is_causal: bool = False) -> Tensor:
    """What the weights are multiplied with, tile by tile as small tiles are cut: (..., Lq, Lk)."""
    noise, generator = q.new_zeros(*q.shape[:-1], k.size(-2)), torch.Generator().manual_seed(seed)
    for tile in Dense(k.size(-2), is_causal=is_causal).tiles(q.shape, on_gpu=False):
        place = noise[tile.queries][..., tile.span]
        kept, scale = bernoulli_samples(place.shape, dropout, generator)
        place.copy_(kept * scale)
    return noise


def _plain(
    q: Tensor, k: Tensor, v: Tensor, allowed: Tensor | None, dropout: float, seed: int, is_causal: bool = False
) -> Tensor:
    logits = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
    if allowed is not None:
        logits = logits.masked_fill(~allowed, -torch.inf)
    return (logits.softmax(dim=-1) * _noise(q, k, dropout, seed, is_causal)) @ v


def _seed_of_the_next_call(start: int) -> int:
    torch.manual_seed(start)
    seed = int(torch.randint(2**62, ()))
    torch.manual_seed(start)
    return seed


def _inputs(*leading: int, queries: int, keys: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(*leading, length, 6, generator=generator, dtype=dtype).requires_grad_()
        for length in (queries, keys, keys)
    ]


MASKS = {
    "padding": (2, 1, 1, 9),
    "past": (7, 9),
    "both": (2, 1, 7, 9),
    "of each matrix": (2, 3, 7, 9),
    "later keys": (9, 9),
}


@pytest.mark.parametrize(
    ("mask", "tile"),
    [("padding", 1), ("past", 64), ("both", 20), ("of each matrix", 64), ("both", 10_000), ("later keys", 20)],
)
def test_tiles_are_the_plain_form_with_the_same_samples(mask: str, tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "_WEIGHTS", tile)
    is_causal = mask == "later keys"
    inputs = _inputs(2, 3, queries=9 if is_causal else 7, keys=9)
    if is_causal:
        allowed = torch.ones(9, 9, dtype=torch.bool).tril()
    else:
        allowed = torch.rand(MASKS[mask], generator=torch.Generator().manual_seed(1)) < 0.6
        allowed[..., 4] = True
    expected = _plain(*inputs, allowed, 0.3, seed=_seed_of_the_next_call(5), is_causal=is_causal)
    out = scaled_dot_product_attention(*inputs, None if is_causal else allowed, 0.3, is_causal=is_causal)
    assert out.allclose(expected)
    # The backward pass draws the samples of its own forward pass.
    torch.manual_seed(12345)
    grad = torch.randn(out.shape, dtype=out.dtype)
    for ours, plain in zip(
        torch.autograd.grad(out, inputs, grad), torch.autograd.grad(expected, inputs, grad), strict=True
    ):
        assert ours.allclose(plain)


def test_chunks_of_heads_and_heads_that_lie_between_positions_are_welcome() -> None:
    heads_last = torch.randn(2, 9, 3, 6, dtype=torch.float64, requires_grad=True).transpose(1, 2)
    chunks = _inputs(2, 3, 4, queries=5, keys=5)
    for inputs in ([heads_last] * 3, chunks):
        expected = _plain(*inputs, None, 0.3, seed=_seed_of_the_next_call(5))
        out = scaled_dot_product_attention(*inputs, dropout=0.3)
        assert out.allclose(expected) and out.stride() == inputs[0].stride()
        grad = torch.randn_like(out)
        ours, plain = (torch.autograd.grad(y, inputs[:1], grad)[0] for y in (out, expected))
        assert ours.allclose(plain)


def test_the_same_seed_gives_the_same_output_and_nothing_is_drawn_without_dropout() -> None:
    q, k, v = _inputs(1, 2, queries=5, keys=5)
    torch.manual_seed(1)
    first = scaled_dot_product_attention(q, k, v, dropout=0.5)
    torch.manual_seed(1)
    assert scaled_dot_product_attention(q, k, v, dropout=0.5).equal(first)
    state = torch.get_rng_state()
    scaled_dot_product_attention(q, k, v)
    assert torch.get_rng_state().equal(state)


@pytest.mark.parametrize(
    ("dtype", "autocast"), [(torch.bfloat16, False), (torch.float16, False), (torch.bfloat16, True)]
)
def test_half_precision_rounds_only_what_it_hands_on(dtype: torch.dtype, autocast: bool) -> None:
    # Three hundred rows, two at a time, add up to the gradients of keys and values.
    inputs = [x.detach().to(dtype).requires_grad_() for x in _inputs(1, 1, queries=300, keys=10)]
    exact = [x.detach().double().requires_grad_() for x in inputs]
    expected = _plain(*exact, None, 0.2, seed=_seed_of_the_next_call(5))
    grad = torch.rand(expected.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64).to(dtype)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        out = scaled_dot_product_attention(*inputs, dropout=0.2)
        assert out.dtype == dtype
        found = out, *torch.autograd.grad(out, inputs, grad)
    rounding = torch.finfo(dtype).eps
    for half, full in zip(found, (expected, *torch.autograd.grad(expected, exact, grad.double())), strict=True):
        torch.testing.assert_close(half.double(), full, rtol=rounding, atol=rounding * full.abs().max().item() / 2)


def test_small_matrices_share_a_tile() -> None:
    found = list(Dense(1).tiles((500, 1, 1, 6), on_gpu=False))
    assert len(found) == 25  # 20 weights in a tile
    assert sum(tile.queries_in((500, 1, 1, 6)) for tile in found) == 500


def test_tiles_of_a_band_are_cut_so_that_few_weights_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    cut = list(Band(torch.zeros(2, 3000, dtype=torch.bool), 512).tiles((2, 12, 3000, 4), on_gpu=False))
    assert len(cut) == 2 * 2 * 47 and all(tile.span.stop - tile.span.start <= 64 + 2 * 512 for tile in cut)
    assert all(tile.lead in [(n, heads) for n in (0, 1) for heads in (slice(0, 7), slice(7, 12))] for tile in cut)


def test_nothing_to_attend_from_gives_nothing() -> None:
    q, k, v = torch.randn(2, 3, 0, 6), torch.randn(2, 3, 4, 6), torch.randn(2, 3, 4, 6, requires_grad=True)
    out = scaled_dot_product_attention(q, k, v, dropout=0.5)
    assert out.shape == (2, 3, 0, 6)
    assert torch.autograd.grad(out.sum(), v)[0].eq(0).all()


def test_a_bias_hides_what_its_mask_hides_with_dropout_too() -> None:
    q, k, v = _inputs(2, 3, queries=7, keys=9, dtype=torch.float32)
    for hidden in (torch.arange(9) >= torch.tensor([[9], [4]]), torch.rand(2, 7, 9) < 0.4):
        hidden[..., 0] = False
        bias = as_bias(hidden, q)
        allowed = ~(hidden[:, None, None] if hidden.dim() == 2 else hidden[:, None])
        assert scaled_dot_product_attention(q, k, v, bias).equal(scaled_dot_product_attention(q, k, v, allowed))
        torch.manual_seed(1)
        dropped = scaled_dot_product_attention(q, k, v, bias, 0.5)
        torch.manual_seed(1)
        assert dropped.equal(scaled_dot_product_attention(q, k, v, allowed, 0.5))


def test_many_large_values_of_equal_share_stay_in_the_range_of_half_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "computes_in_tiles", lambda x: False)
    q = torch.zeros(1, 1, 1024, 4, dtype=torch.float16)
    v = torch.full_like(q, 200.0)
    plan = Band(torch.zeros(1, 1024, dtype=torch.bool), 1023)
    mixed = tiled_attention(q, q, v, plan, ByDistance(torch.zeros(1, 2047)))
    torch.testing.assert_close(mixed, v, rtol=1e-2, atol=0)
