"""The multiplicative layer, against its sum written out, and what it can represent."""

import pytest
import torch
from small_parts import vectors
from tables import for_each
from torch import Tensor

from pyramidions.nn.multiplicative import Multiplicative, check_modules


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
@for_each("bias", [False, True])
@for_each(("in_dim", "modules", "out_dim"), [(8, 2, 8), (8, 4, 8), (4, 3, 12), (6, 2, 40), (5, 1, 5)])
def test_both_forms_are_the_sum_in_the_order_of_modules(in_dim: int, modules: int, out_dim: int, bias: bool) -> None:
    made, x = layer(in_dim, modules, out_dim, bias), vectors(2, 3, in_dim)
    expected = torch.stack([torch.stack([summed(made, row) for row in rows]) for rows in x])
    for computed in (made(x), made.factored(x), made.formed(x)):
        torch.testing.assert_close(computed, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(made.factored(x[0, 0]), expected[0, 0], rtol=0, atol=1e-5)


@torch.no_grad()
def test_the_factored_form_equals_the_matrix_to_a_millionth() -> None:
    made, x = layer(64, 8, 64).double(), vectors(5, 64).double()
    torch.testing.assert_close(made.factored(x), made.formed(x), rtol=0, atol=1e-12)
    torch.testing.assert_close(made.float().factored(x.float()), made.formed(x.float()), rtol=1e-6, atol=1e-6)


@torch.no_grad()
@for_each("seed", range(20))
def test_it_puts_the_numbers_of_a_vector_into_any_order(seed: int) -> None:
    dim, modules = 24, 4
    generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
    made, order = Multiplicative(dim, modules, dim), torch.randperm(dim, generator=generator)
    # x_i goes to place order[i], which is number m of module s.
    s, m = order // (dim // modules), order % (dim // modules)
    made.across.copy_(torch.arange(modules)[:, None] == s)
    made.within.copy_(m[:, None] == torch.arange(dim // modules))
    x = vectors(3, dim, seed=seed)
    expected = torch.empty_like(x)
    expected[:, order] = x
    assert made.factored(x).equal(expected) and made.formed(x).equal(expected)


@for_each("form", ["factored", "formed"])
@for_each("out_dim", [4, 24])
def test_gradients_are_those_of_small_differences(form: str, out_dim: int) -> None:
    made, x = layer(4, 2, out_dim).double(), vectors(3, 4).double().requires_grad_()
    weights = (made.across, made.within, made.bias)
    assert torch.autograd.gradcheck(lambda x, *_: getattr(made, form)(x), (x, *weights))


def test_few_rows_have_no_matrix_made_and_many_have(monkeypatch: pytest.MonkeyPatch) -> None:
    made, used = layer(8, 2, 8), []
    for form in ("factored", "formed"):
        monkeypatch.setattr(made, form, lambda x, form=form: used.append(form))
    for rows in (1, 4, 5, 100):
        made(vectors(1, rows, 8))
    assert used == ["factored", "factored", "formed", "formed"]


def test_it_has_the_weights_of_few_modules_and_starts_as_published() -> None:
    made = Multiplicative(512, 8, 512)
    assert sum(weight.numel() for weight in made.parameters()) == 512 * 8 + 512 * 64 + 512
    assert made.bias is not None and not made.bias.any()
    assert made.across.std().item() == pytest.approx(0.5, rel=0.05)
    # Glorot: uniform within the root of 6 / (512 + 64)
    assert made.within.abs().max().item() == pytest.approx((6 / 576) ** 0.5, rel=0.01)


def test_modules_that_do_not_share_a_width_are_refused() -> None:
    assert check_modules("embed_dim", 12, 3) == 4
    with pytest.raises(ValueError, match=r"^`embed_dim` \(8\) must be divisible by `modules` \(3\)\.$"):
        check_modules("embed_dim", 8, 3)
    with pytest.raises(ValueError, match=r"^`modules` must be at least 1, but is 0\.$"):
        check_modules("embed_dim", 8, 0)
