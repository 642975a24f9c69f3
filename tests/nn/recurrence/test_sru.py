"""The simple recurrent unit, beside its formula."""

import pytest
import torch
from small_parts import DIM, vectors
from tables import for_each
from torch import Tensor

from pyramidions.nn.recurrence import SRURecurrence


def make(dim: int = 3, layers: int = 1, scaled: bool = True) -> SRURecurrence:
    torch.manual_seed(0)
    part = SRURecurrence(DIM, dim, layers, scaled)
    with torch.no_grad():
        for weight in part.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return part


@torch.no_grad()
def by_formula(part: SRURecurrence, x: Tensor, scale: float = 3**0.5) -> Tensor:
    h = part.down(part.norm(x))
    for unit in part.units:
        c, out = torch.zeros_like(h[:, 0]), []
        for t in range(x.size(1)):
            here = h[:, t]
            f, q = unit.forget(here).sigmoid(), unit.highway(here).sigmoid()
            c = f * c + (1 - f) * unit.transform(here)
            out.append(q * c + (1 - q) * here * scale)
        h = torch.stack(out, dim=1)
    return part.up(h)


@for_each(("dim", "layers"), [(1, 1), (3, 1), (3, 2)])
def test_it_is_the_formula(dim: int, layers: int) -> None:
    part, x = make(dim, layers), vectors(2, 9, DIM)
    torch.testing.assert_close(part.run(x, None, None)[0], by_formula(part, x))


def test_without_scale_it_has_no_bias_as_up_to_release_0_2_0() -> None:
    part, x = make(scaled=False), vectors(2, 9, DIM)
    assert part.units[0].transform.bias is None and make().units[0].transform.bias is not None
    torch.testing.assert_close(part.run(x, None, None)[0], by_formula(part, x, scale=1.0))


def test_it_is_the_formula_at_thousands_of_positions() -> None:
    part, x = make().double(), vectors(1, 8192, DIM)
    expected = by_formula(part, x.double())
    torch.testing.assert_close(part.float().run(x, None, None)[0].double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("bias", "keeps"), [(-200.0, False), (200.0, True)])
def test_a_gate_that_is_shut_forgets_all_and_one_that_is_open_takes_nothing_up(bias: float, keeps: bool) -> None:
    part, x = make(), vectors(2, 5, DIM)
    (unit,) = part.units
    torch.nn.init.zeros_(unit.forget.weight)
    torch.nn.init.constant_(unit.forget.bias, bias)
    carried = torch.tensor([[[1.0, 2.0, 3.0]]]).expand(2, 1, 3)
    h = part.down(part.norm(x))
    c = carried if keeps else unit.transform(h)
    q = unit.highway(h).sigmoid()
    out, last = part.run(x, None, carried)
    torch.testing.assert_close(out, part.up(q * c + (1 - q) * h * 3**0.5))
    torch.testing.assert_close(last[:, 0], c[:, -1])


def test_sums_have_the_digits_of_float32_under_mixed_precision() -> None:
    part, x = make(), vectors(1, 2048, DIM)
    with torch.autocast("cpu", torch.bfloat16):
        out, last = part.run(x, None, None)
    assert out.dtype == torch.bfloat16 and last.dtype == torch.float32
    torch.testing.assert_close(out.float(), by_formula(part, x), rtol=0.05, atol=0.1)
