"""Linformer: keys and values are projected along the sequence."""

import pytest
import torch
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn.attention import LinformerAttention
from pyramidions.nn.sublayer import LayerContext
from tests.small_parts import ends_after, vectors


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
