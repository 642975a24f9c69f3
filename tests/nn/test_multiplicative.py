"""The multiplicative layer, against its sum written out, and what it can represent."""

import pytest
import torch
from small_parts import vectors
from torch import Tensor

from pyramidions.nn.multiplicative import Multiplicative


def layer(in_dim: int, modules: int, out_dim: int, bias: bool = True) -> Multiplicative:
    torch.manual_seed(0)
    made = Multiplicative(in_dim, modules, out_dim, bias)
    if made.bias is not None:
        torch.nn.init.normal_(made.bias)
    return made


def summed(made: Multiplicative, x: Tensor) -> Tensor:
    """The definition, for one vector."""
    a, e = made.across.T, made.within if len(made.within) == len(x) else made.within.T
    return torch.tensor(
        [
            sum(float(x[i]) * float(a[i, s]) * float(e[i, m]) for i in range(len(x)))
            + (0.0 if made.bias is None else float(made.bias[s * e.size(1) + m]))
            for s in range(a.size(1))
            for m in range(e.size(1))
        ]
    )


@torch.no_grad()
@pytest.mark.parametrize(
    ("in_dim", "modules", "out_dim", "bias"), [(8, 4, 8, True), (4, 3, 12, False), (6, 2, 40, True), (5, 1, 5, False)]
)
def test_both_forms_are_the_sum_in_the_order_of_modules(in_dim: int, modules: int, out_dim: int, bias: bool) -> None:
    made, x = layer(in_dim, modules, out_dim, bias), vectors(2, 3, in_dim)
    expected = torch.stack([torch.stack([summed(made, row) for row in rows]) for rows in x])
    for computed in (made(x), made.factored(x), made.formed(x)):
        torch.testing.assert_close(computed, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(made.factored(x[0, 0]), expected[0, 0], rtol=0, atol=1e-5)


def test_it_has_the_weights_of_few_modules_and_starts_as_published() -> None:
    made = Multiplicative(512, 8, 512)
    assert sum(weight.numel() for weight in made.parameters()) == 512 * 8 + 512 * 64 + 512
    assert made.bias is not None and not made.bias.any()
    assert made.across.std().item() == pytest.approx(0.5, rel=0.05)
    # Glorot: uniform within the root of 6 / (512 + 64)
    assert made.within.abs().max().item() == pytest.approx((6 / 576) ** 0.5, rel=0.01)
