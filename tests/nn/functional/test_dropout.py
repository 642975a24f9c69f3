"""Dropout by Bernoulli samples."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pyramidions.nn.functional import dropout
from pyramidions.nn.functional.dropout import Dropout, bernoulli_samples, drop, relu_drop


@pytest.mark.parametrize("probability", [0.1, 0.9])
def test_samples_drop_as_often_as_the_probability_says(probability: float) -> None:
    torch.manual_seed(0)
    kept, scale = bernoulli_samples(torch.Size((1000, 1001)), probability)
    # five standard deviations of the mean of 1,001,000 samples
    assert 1 - kept.float().mean().item() == pytest.approx(
        probability, abs=5 * (probability * (1 - probability) / 1e6) ** 0.5
    )
    # What is kept is scaled so that the mean stays exactly, of a probability in 65,536th.
    assert scale == 65536 / (65536 - round(65536 * probability))


def test_each_of_the_four_samples_in_a_number_is_fair_and_none_tells_the_next() -> None:
    torch.manual_seed(0)
    kept, _ = bernoulli_samples(torch.Size((250_000, 4)), 0.5)
    heads = kept.float() - 0.5
    assert kept.float().mean(dim=0).tolist() == pytest.approx([0.5] * 4, abs=0.005)
    correlations = 4 * heads.T @ heads / len(heads)
    assert correlations.fill_diagonal_(0).abs().max().item() < 0.01
    assert 4 * (heads[1:] * heads[:-1]).mean(dim=0).abs().max().item() < 0.01


def test_the_same_seed_drops_the_same_values_and_another_seed_others() -> None:
    x = torch.ones(100, 7)
    torch.manual_seed(1)
    first, second = drop(x, 0.5), drop(x, 0.5)
    torch.manual_seed(1)
    assert drop(x, 0.5).equal(first) and not first.equal(second)
    for dtype in (torch.bfloat16, torch.float16):
        out = drop(x.to(dtype), 0.5)
        assert out.dtype == dtype and set(out.flatten().tolist()) == {0.0, 2.0}


@pytest.mark.parametrize(("function", "before"), [(drop, torch.clone), (relu_drop, torch.relu)])
def test_outputs_and_gradients_are_those_of_a_product_with_the_mask(function: Any, before: Any) -> None:
    x = torch.randn(5, 9, dtype=torch.float64, requires_grad=True)

    def seeded(x: Tensor) -> Tensor:
        torch.manual_seed(3)
        out: Tensor = function(x, 0.3)
        return out

    kept = seeded(torch.ones_like(x))
    assert sorted(kept.unique().tolist()) == pytest.approx([0.0, 65536 / (65536 - 19661)])
    assert seeded(x).allclose(before(x) * kept)
    assert torch.autograd.gradcheck(seeded, x)
    assert function(x, 0.0).equal(before(x))


def test_nothing_is_dropped_where_the_probability_is_zero_or_the_model_does_not_train() -> None:
    x = torch.randn(3, 4)
    assert drop(x, 0.0) is x and Dropout(0.5).eval()(x) is x
    assert not Dropout(0.5).train()(x).equal(x)


@pytest.fixture
def gpu_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take, on the CPU, the path that only a GPU takes."""
    monkeypatch.setattr(dropout, "draws_bernoulli", lambda x: False)


def test_a_gpu_keeps_of_relu_and_dropout_one_tensor_and_hands_on_nothing_negative(gpu_path: None) -> None:
    x = torch.randn(100, 10, requires_grad=True)
    saved: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda y: saved.append(y) or y, lambda y: y):
        out = relu_drop(x, 0.3)
    assert (out >= 0).all() and len(saved) == 1 and saved[0].data_ptr() == out.data_ptr()
    gradient = torch.autograd.grad(out.sum(), x)[0]
    assert gradient[x < 0].eq(0).all() and gradient[out > 0].allclose(torch.tensor(1 / 0.7))
