"""Products with large matrices, as a linear layer and loops compute them."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from live_memory import most_bytes
from small_parts import vectors
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from pyramidions.nn.functional import products as module
from pyramidions.nn.functional.products import long_products, row_products


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


sizes = st.integers(1, 9)


@settings(max_examples=30, deadline=None)
@given(count=sizes, width=sizes, height=sizes, taken=sizes, held=st.sampled_from([1, 40, 2**22]))
def test_products_are_those_of_a_loop_with_and_without_gradients(
    count: int, width: int, height: int, taken: int, held: int
) -> None:
    x, matrix = vectors(count, width).double(), vectors(height, width, seed=1).double()
    rows = torch.randint(height, (count, taken))
    expected = torch.tensor([[float(x[t] @ matrix[row]) for row in rows[t]] for t in range(count)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_GATHERED", held)
        for gradients in (False, True):
            with torch.set_grad_enabled(gradients):
                torch.testing.assert_close(row_products(x, matrix, rows), expected.double(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("held", [1, 2**22])
def test_gradients_are_those_of_differences(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_GATHERED", held)
    x, matrix = (vectors(*shape).double().requires_grad_() for shape in ((4, 3), (6, 3)))
    rows = torch.tensor([[0, 0], [5, 1], [1, 2], [3, 5]])
    assert torch.autograd.gradcheck(lambda x, matrix: row_products(x, matrix, rows), (x, matrix))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_kept_and_autocast_is_followed(dtype: torch.dtype) -> None:
    x, matrix, rows = vectors(4, 8), vectors(6, 8, seed=1), torch.tensor([[0, 5]] * 4)
    expected = row_products(x, matrix, rows)
    with torch.no_grad():
        half = row_products(x.to(dtype), matrix.to(dtype), rows)
        with torch.autocast("cpu", dtype):
            cast = row_products(x, matrix, rows)
    assert half.dtype == cast.dtype == dtype
    torch.testing.assert_close(half.float(), expected, rtol=0.03, atol=0.03)
    torch.testing.assert_close(cast, half)


def test_rows_of_a_few_vectors_are_held_with_gradients_and_none_without(monkeypatch: pytest.MonkeyPatch) -> None:
    x, matrix, rows = vectors(256, 32), vectors(64, 32, seed=1).requires_grad_(), torch.randint(64, (256, 16))
    copies = 256 * 16 * 32 * 4

    def most(held: int, gradients: bool) -> int:
        monkeypatch.setattr(module, "_GATHERED", held)
        with torch.set_grad_enabled(gradients):
            return most_bytes(
                lambda: row_products(x, matrix, rows).sum().backward() if gradients else row_products(x, matrix, rows)
            )

    assert most(2**22, gradients=True) > copies > 4 * most(1000, gradients=True)
    assert copies > 4 * most(2**22, gradients=False)
