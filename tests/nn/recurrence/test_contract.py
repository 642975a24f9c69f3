"""What every recurrence promises; a new kind is held to it by being registered."""

import pytest
import torch
from noise import add_noise
from small_parts import DIM, SETTING, ends_after, vectors
from torch import Tensor

from pyramidions.nn.recurrence import RECURRENCE, Recurrence
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
@pytest.mark.parametrize("steps", [(1, 1, 1, 1, 1), (3, 2)])
@torch.no_grad()
def test_steps_of_several_hypotheses_equal_a_pass_over_each(kind: str, steps: tuple[int, ...]) -> None:
    part, x = make(kind), vectors(6, 5, DIM)
    state, found = part.new_state(), []
    for new in x.split(steps, dim=1):
        # (BW, T, D) -> (B, WT, D) and back, three hypotheses of each of two documents
        out = part.step(new.reshape(2, -1, DIM), LayerContext(hypotheses=3), state)
        found.append(out.view_as(new))
    torch.testing.assert_close(torch.cat(found, dim=1), run(part, x))


@kinds
@torch.no_grad()
def test_what_is_carried_follows_the_hypotheses(kind: str) -> None:
    part, x, state = make(kind), vectors(4, 5, DIM), make(kind).new_state()
    part.step(x[:, :3].reshape(2, -1, DIM), LayerContext(hypotheses=2), state)
    # Of the second document stay two descendants of its first hypothesis and one of its second.
    order = torch.tensor([2, 2, 3])
    state.reorder(order, torch.tensor([1]))
    new = vectors(3, 2, DIM, seed=1)
    found = part.step(new.reshape(1, -1, DIM), LayerContext(hypotheses=3), state).view_as(new)
    torch.testing.assert_close(found, run(part, torch.cat([x[order, :3], new], dim=1))[:, 3:])


@kinds
@torch.no_grad()
def test_padding_in_front_of_new_positions_is_not_carried(kind: str) -> None:
    part, x, state = make(kind), vectors(2, 5, DIM), make(kind).new_state()
    padding = torch.tensor([[False, False, False], [True, True, False]])
    context = LayerContext(new_padding_mask=padding)
    first = part.step(x[:, :3], context, state)
    found = torch.cat([first, part.step(x[:, 3:], LayerContext(), state)], dim=1)
    torch.testing.assert_close(found[0], run(part, x)[0])
    torch.testing.assert_close(found[1, 2:], run(part, x[1:, 2:])[0])


@kinds
def test_gradients_reach_every_input_and_parameter(kind: str) -> None:
    part, x = make(kind).train(), vectors(2, 7, DIM).requires_grad_()
    run(part, x).square().sum().backward()
    assert x.grad is not None and (x.grad.abs().sum(dim=-1) > 0).all()
    for name, weight in part.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all() and weight.grad.any(), name


@kinds
def test_the_output_has_the_precision_of_the_input(kind: str) -> None:
    for dtype in (torch.bfloat16, torch.float64):
        out = run(make(kind).to(dtype), vectors(2, 3, DIM).to(dtype))
        assert out.dtype == dtype and out.isfinite().all()
