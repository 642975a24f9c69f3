"""Products with a long matrix: those of a linear layer, whoever computes them."""

import pytest
import torch
import torch.nn.functional as F
from small_parts import vectors
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from pyramidions.nn.functional import products as module
from pyramidions.nn.functional.products import long_products


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 4, 3)])
def test_products_are_those_of_a_linear_layer_also_without_onednn(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, matrix = vectors(*shape), vectors(7, 3, seed=1)
    torch.testing.assert_close(long_products(x, matrix), x @ matrix.T)
    with torch.no_grad():
        torch.testing.assert_close(long_products(x, matrix), x @ matrix.T)
        monkeypatch.setattr(module, "_LINEAR", None)
        torch.testing.assert_close(long_products(x, matrix), x @ matrix.T)


def test_onednn_computes_on_a_cpu_in_float32_without_gradients_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, calls = module._LINEAR, []
    if operator is None:
        pytest.skip("torch has no oneDNN here")
    monkeypatch.setattr(module, "_LINEAR", lambda *given: calls.append(1) or operator(*given))

    def products(dtype: torch.dtype) -> torch.dtype:
        x, matrix = vectors(4, 8).to(dtype), vectors(6, 8, seed=1).to(dtype)
        found: Tensor = long_products(x, matrix)
        torch.testing.assert_close(found, F.linear(x, matrix))
        return found.dtype

    products(torch.float32)
    with torch.no_grad():
        assert products(torch.float64) == torch.float64 and products(torch.bfloat16) == torch.bfloat16
        with torch.autocast("cpu", torch.bfloat16):
            assert products(torch.float32) == torch.bfloat16
        with torch.backends.mkldnn.flags(enabled=False):
            products(torch.float32)
        assert not calls
        products(torch.float32)
    assert calls == [1]


@torch.no_grad()
def test_their_operations_are_counted() -> None:
    with FlopCounterMode(display=False) as counted:
        long_products(vectors(4, 8), vectors(6, 8, seed=1))
    assert counted.get_total_flops() == 2 * 4 * 8 * 6
