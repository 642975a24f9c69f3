"""The simple recurrent unit, beside its formula."""

import pytest
import torch
from noise import add_noise
from small_parts import DIM, vectors
from torch import Tensor

from pyramidions.nn.recurrence import SRURecurrence


def make(dim: int = 3, layers: int = 1, scaled: bool = True) -> SRURecurrence:
    torch.manual_seed(0)
    part = SRURecurrence(DIM, dim, layers, scaled)
    add_noise(part, 0.3)
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


@pytest.mark.parametrize(("dim", "layers"), [(1, 1), (3, 2)])
def test_it_is_the_formula(dim: int, layers: int) -> None:
    part, x = make(dim, layers), vectors(2, 9, DIM)
    torch.testing.assert_close(part.run(x, None, None)[0], by_formula(part, x))


def test_without_scale_it_has_no_bias_as_up_to_release_0_2_0() -> None:
    part, x = make(scaled=False), vectors(2, 9, DIM)
    assert part.units[0].transform.bias is None and make().units[0].transform.bias is not None
    torch.testing.assert_close(part.run(x, None, None)[0], by_formula(part, x, scale=1.0))


def test_sums_have_the_digits_of_float32_under_mixed_precision() -> None:
    part, x = make(), vectors(1, 2048, DIM)
    with torch.autocast("cpu", torch.bfloat16):
        out, last = part.run(x, None, None)
    assert out.dtype == torch.bfloat16 and last.dtype == torch.float32
    torch.testing.assert_close(out.float(), by_formula(part, x), rtol=0.05, atol=0.1)
