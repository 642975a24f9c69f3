"""What every recurrence promises, a new kind by being registered, and the simple recurrent unit beside its formula."""

import pytest
import torch
from noise import add_noise
from small_parts import DIM, SETTING, ends_after, vectors
from torch import Tensor

from pyramidions.nn.recurrence import RECURRENCE, Recurrence, SRURecurrence
from pyramidions.nn.sublayer import LayerContext

# Further options of a kind under which it promises the same, behind its name.
FORMS: dict[str, tuple[str, dict[str, object]]] = {
    **{kind: (kind, {}) for kind in RECURRENCE.names},
    "sru of two layers": ("sru", {"dim": 5, "layers": 2}),
}
kinds = pytest.mark.parametrize("kind", FORMS)


def make(kind: str, confined_to: int | None = None, **options: object) -> Recurrence:
    torch.manual_seed(0)
    kind, given = FORMS[kind]
    part = RECURRENCE.build(kind, {**given, **options}, **SETTING, confined_to=confined_to).eval()
    add_noise(part, 0.1)
    return part


def run(part: Recurrence, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
    return part(x, LayerContext(padding_mask))


@kinds
def test_a_position_depends_on_itself_and_all_before_it_and_on_none_after_it(kind: str) -> None:
    part, x = make(kind), vectors(2, 7, DIM).requires_grad_()
    out = run(part, x)
    assert out.shape == x.shape
    (grad,) = torch.autograd.grad(out[:, 4].square().sum(), x)
    assert (grad[:, :5].abs().sum(dim=-1) > 0).all() and not grad[:, 5:].any()


@kinds
@pytest.mark.parametrize("order", [[5, 6, 0, 1, 2, 3, 4], [0, 5, 1, 2, 6, 3, 4]])
def test_padding_is_passed_over_wherever_it_stands(kind: str, order: list[int]) -> None:
    part, alone = make(kind), vectors(2, 5, DIM)
    padded = torch.cat([alone, torch.full((2, 2, DIM), 1e4)], dim=1)[:, order]
    padding_mask = torch.tensor(order).expand(2, -1) >= 5
    found = run(part, padded, padding_mask)
    torch.testing.assert_close(found[~padding_mask].view(2, 5, DIM), run(part, alone))
    padding_mask = padding_mask.index_fill(0, torch.tensor(0), True)
    found = run(part, padded, padding_mask)
    torch.testing.assert_close(found[1:][~padding_mask[1:]], run(part, alone)[1])
    # A document of padding stays finite.
    assert found.isfinite().all()


@kinds
@pytest.mark.parametrize("length", [3, 8, 11])
def test_it_begins_anew_at_each_block(kind: str, length: int) -> None:
    part, x, padding = make(kind, confined_to=4), vectors(2, length, DIM), ends_after(length, 2, width=length)
    assert part.confined_to == 4
    expected = torch.cat([run(make(kind), block) for block in x.split(4, dim=1)], dim=1)
    torch.testing.assert_close(run(part, x), expected)
    torch.testing.assert_close(run(part, x, padding)[~padding], expected[~padding])


@kinds
def test_the_output_has_the_precision_of_the_input(kind: str) -> None:
    for dtype in (torch.bfloat16, torch.float64):
        out = run(make(kind).to(dtype), vectors(2, 3, DIM).to(dtype))
        assert out.dtype == dtype and out.isfinite().all()


def sru(dim: int = 3, layers: int = 1, scaled: bool = True) -> SRURecurrence:
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
    part, x = sru(dim, layers), vectors(2, 9, DIM)
    torch.testing.assert_close(part.run(x, None, None)[0], by_formula(part, x))


def test_without_scale_it_has_no_bias_as_up_to_release_0_2_0() -> None:
    part, x = sru(scaled=False), vectors(2, 9, DIM)
    assert part.units[0].transform.bias is None and sru().units[0].transform.bias is not None
    torch.testing.assert_close(part.run(x, None, None)[0], by_formula(part, x, scale=1.0))


def test_sums_have_the_digits_of_float32_under_mixed_precision() -> None:
    part, x = sru(), vectors(1, 2048, DIM)
    with torch.autocast("cpu", torch.bfloat16):
        out, last = part.run(x, None, None)
    assert out.dtype == torch.bfloat16 and last.dtype == torch.float32
    torch.testing.assert_close(out.float(), by_formula(part, x), rtol=0.05, atol=0.1)
