"""Attention to a summary of all keys: Linformer, and efficient attention."""

import pytest
import torch
from small_parts import ends_after, vectors
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn.attention import EfficientAttention, LinformerAttention
from pyramidions.nn.attention.local_heads import LocalHeads
from pyramidions.nn.sublayer import LayerContext


def made(max_length: int = 9, **options: object) -> LinformerAttention:
    return LinformerAttention(max_length, **options).eval()  # type: ignore[arg-type]


def naive(q: Tensor, k: Tensor, v: Tensor, of_keys: Tensor, of_values: Tensor) -> Tensor:
    """Equation 7 for one head without padding: (L, E) x 3, (K, L) x 2 -> (L, E)."""
    return (q @ (of_keys @ k).T / q.size(-1) ** 0.5).softmax(-1) @ (of_values @ v)


@pytest.mark.parametrize("shared", [True, False])
@torch.no_grad()
def test_it_is_equation_seven_and_a_shorter_document_uses_the_first_columns(shared: bool) -> None:
    attention, (q, k, v) = made(compressed=3, shared=shared), vectors(3, 3, 2, 9, 4)
    assert shared == (attention.compress_values is None)
    out = attention(q, k, v, LayerContext(ends_after(9, 6, 1)))
    for row, length in enumerate((9, 6, 1)):
        of_keys = attention.compress_keys[:, :length]
        of_values = of_keys if attention.compress_values is None else attention.compress_values[:, :length]
        torch.testing.assert_close(
            attention(*(x[row : row + 1, :, :length] for x in (q, k, v)))[0], out[row, :, :length]
        )
        for head in range(2):
            expected = naive(*(x[row, head, :length] for x in (q, k, v)), of_keys, of_values)
            torch.testing.assert_close(out[row, head, :length], expected)


def test_keys_of_a_document_of_full_length_keep_their_variance() -> None:
    torch.manual_seed(0)
    keys = made(4096).compress_keys @ torch.randn(4096, 8)
    assert keys.std().item() == pytest.approx(1.0, abs=0.1)


def test_layers_after_a_pooling_have_weights_for_what_it_hands_on() -> None:
    attention = "linformer(compressed=4, shared=False)"
    model = build(preset("vanilla", self_attention=attention, pooling_lengths="16,None", max_source_positions=60), 50)
    shapes = [(tuple(p.shape), name) for name, p in model.encoder.named_parameters() if "compress_" in name]
    assert [shape for shape, _ in shapes] == [(4, 60), (4, 60), (4, 16), (4, 16)]
    assert not any("compress_" in name for name, _ in model.decoder.named_parameters())


@pytest.mark.parametrize("autocast", [False, True])
def test_weights_of_many_keys_are_not_rounded_to_half_precision(autocast: bool) -> None:
    # Of so many like keys each weighs 200.5 of float16's least numbers.
    q, v = torch.zeros(1, 1, 83_677, 32).half(), torch.ones(1, 1, 83_677, 32).half()
    with torch.autocast("cpu", torch.float16, enabled=autocast):
        out = EfficientAttention(local_heads=0)(q, q, v)
    assert out.dtype == torch.half and out[0, 0, 0].tolist() == pytest.approx([1.0] * 32, abs=1e-3)


@pytest.mark.parametrize(("local_heads", "window"), [(0, 4), (1, 2), (2, 6), (3, 100)])
def test_queries_read_a_summary_of_all_keys_but_for_the_first_heads_which_see_a_window(
    local_heads: int, window: int
) -> None:
    (q, k, v), mask = torch.randn(3, 2, 3, 11, 4), ends_after(11, 6)
    out = EfficientAttention(local_heads=local_heads, local_window=window)(q, k, v, LayerContext(mask))
    for row, length in enumerate((11, 6)):
        far = (torch.arange(length)[:, None] - torch.arange(length)).abs() > window // 2
        for head in range(3):
            queries, keys, values = (x[row, head, :length] for x in (q, k, v))
            if head < local_heads:
                expected = (queries @ keys.T / 2).masked_fill(far, -torch.inf).softmax(-1) @ values
            else:
                expected = queries.softmax(dim=1) @ (keys.softmax(dim=0).T @ values)
            torch.testing.assert_close(out[row, head, :length], expected)


def test_local_heads_hand_torch_four_dimensions_which_is_what_fused_kernels_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[torch.Size, torch.Size]] = []
    fused = torch.nn.functional.scaled_dot_product_attention

    def watched(q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor, **rest: object) -> Tensor:
        seen.append((k.shape, attn_mask.shape))
        return fused(q, k, v, attn_mask, **rest)

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", watched)
    monkeypatch.setattr("pyramidions.nn.functional.attention.computes_in_tiles", lambda x: False)
    x = torch.randn(2, 3, 11, 4)
    LocalHeads(3, 8).beside(lambda *_: x, x, x, x, None)
    # Two documents of three chunks, each of which sees three.
    assert seen == [((6, 3, 12, 4), (6, 1, 4, 12))]
