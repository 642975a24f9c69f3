"""The recurrence in rounds, beside a loop."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyramidions.nn.functional.linear_recurrence import linear_recurrence


def loop(decay: Tensor, new: Tensor, before: Tensor | None = None) -> Tensor:
    c, found = torch.zeros_like(new[:, 0]) if before is None else before, []
    for t in range(new.size(1)):
        c = decay[:, t] * c + new[:, t]
        found.append(c)
    return torch.stack(found, dim=1)


@settings(deadline=None, max_examples=30)
@given(length=st.integers(1, 40), batch=st.integers(1, 3), seed=st.integers(0, 99), starts=st.booleans())
def test_rounds_equal_the_loop(length: int, batch: int, seed: int, starts: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    decay = torch.rand(batch, length, 2, generator=generator).double()
    # Some decays are exactly 0 or 1.
    decay = (decay * 1.4 - 0.2).clamp(0, 1)
    new = torch.randn(batch, length, 2, generator=generator).double()
    before = torch.randn(batch, 2, generator=generator).double() if starts else None
    torch.testing.assert_close(linear_recurrence(decay, new, before), loop(decay, new, before), rtol=1e-12, atol=1e-12)


def test_thousands_of_positions_equal_the_loop_in_float32() -> None:
    torch.manual_seed(0)
    # From what is forgotten at once to what is never.
    decay, new = (torch.randn(2, 8192, 4) + torch.tensor([-20, 0, 5, 30])).sigmoid(), torch.randn(2, 8192, 4)
    found, exact = linear_recurrence(decay, new), loop(decay.double(), new.double())
    assert exact.abs().max() > 50
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-3)


def test_gradients_are_those_of_the_loop() -> None:
    torch.manual_seed(0)
    given = [torch.rand(2, 7, 3), torch.randn(2, 7, 3), torch.randn(2, 3)]
    given = [one.double().requires_grad_() for one in given]
    assert torch.autograd.gradcheck(linear_recurrence, given)
    expected, found = (torch.autograd.grad(run(*given).square().sum(), given) for run in (loop, linear_recurrence))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_gradients_keep_two_tensors_whatever_the_length() -> None:
    decay, new = torch.rand(1, 4096, 2).requires_grad_(), torch.randn(1, 4096, 2).requires_grad_()
    kept: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        linear_recurrence(decay, new)
    assert [x.shape for x in kept] == [(1, 4096, 2)] * 2
