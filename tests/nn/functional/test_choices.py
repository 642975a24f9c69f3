"""Choices of one of N, with and without noise, and what a masked ReLU keeps."""

import pytest
import torch
from live_memory import saved_bytes
from small_parts import vectors

from pyramidions.nn.functional.choices import choose, gated_relu


@pytest.mark.parametrize(("temperature", "dtype"), [(0.5, torch.float32), (2.0, torch.bfloat16)])
def test_noise_chooses_with_the_probabilities_of_a_softmax_at_its_temperature(
    temperature: float, dtype: torch.dtype
) -> None:
    logits = torch.tensor([0.25, -0.5, 1.0], dtype=dtype)
    torch.manual_seed(0)
    share = choose(logits.expand(50_000, -1), temperature).bincount(minlength=3) / 50_000
    torch.testing.assert_close(share, (logits.float() / temperature).softmax(dim=-1), rtol=0, atol=0.01)


@pytest.mark.parametrize("edge", [0.0, 1.0])
def test_noise_is_finite_at_the_edges_of_what_is_drawn(edge: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda shape, **kwargs: torch.full(shape, edge, **kwargs))
    assert choose(torch.tensor([[0.0, 1.0, 0.5]]), 0.1).tolist() == [1]


def test_without_noise_the_greatest_logit_is_chosen_and_the_first_of_equals() -> None:
    assert choose(torch.tensor([[1.0, 3.0, 2.0], [4.0, 4.0, 0.0]])).tolist() == [1, 0]


def test_as_much_is_kept_for_the_backward_pass_whether_a_choice_was_made_or_not() -> None:
    hidden, logits = vectors(64, 4, 8, 2).requires_grad_(), vectors(64, 4, 8).requires_grad_()
    for chosen in (None, logits.argmax(dim=-1)):
        # The softmax, and the output.
        assert saved_bytes(lambda chosen=chosen: gated_relu(hidden, logits, chosen)) == hidden.nbytes + logits.nbytes
