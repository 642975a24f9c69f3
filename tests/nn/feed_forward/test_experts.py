"""The feed-forward part of experts beside dense products and a loop."""

from typing import Any

import pytest
import torch
from small_parts import vectors
from tables import for_each
from torch import Tensor

from pyramidions.nn.feed_forward import DenseFeedForward, ExpertsFeedForward
from pyramidions.nn.sublayer import LayerContext

DIM, WIDTH, EXPERTS = 6, 24, 4


def make(experts: int = EXPERTS, **options: Any) -> ExpertsFeedForward:
    torch.manual_seed(0)
    made = ExpertsFeedForward(DIM, WIDTH, experts, **options).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return made


def run(part: ExpertsFeedForward, x: Tensor) -> Tensor:
    return part(x, LayerContext())


def inputs() -> Tensor:
    return vectors(2, 7, DIM).double()


def masked_dense(part: ExpertsFeedForward, x: Tensor, mask: Tensor) -> Tensor:
    """Compute every unit, and multiply those of an expert by one number of ``mask`` (B, L, experts)."""
    weights = part.chosen
    hidden = (x @ weights.into.T) * mask.repeat_interleave(WIDTH // mask.size(-1), dim=-1)
    return hidden.relu() @ weights.out_of + weights.bias


@for_each("experts", [1, 2, 4, 24])
def test_evaluation_is_the_dense_part_of_one_expert(experts: int) -> None:
    part, x = make(experts).eval(), inputs()
    out, units = run(part, x), WIDTH // experts
    for place in [(row, column) for row in range(2) for column in range(7)]:
        logits = part.chosen.controller(x[place]).tolist()
        begin = units * max(range(experts), key=lambda expert, of=logits: of[expert])
        into, out_of = (w[begin : begin + units] for w in (part.chosen.into, part.chosen.out_of))
        expected = (into @ x[place]).relu() @ out_of + part.chosen.bias
        torch.testing.assert_close(out[place], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("training", [False, True])
def test_one_expert_is_the_dense_part_with_the_same_weights(training: bool) -> None:
    part, dense, x = make(1).train(training), DenseFeedForward(DIM, WIDTH).double(), inputs()
    with torch.no_grad():
        dense.fc1.weight.copy_(part.chosen.into)
        dense.fc2.weight.copy_(part.chosen.out_of.T)
        dense.fc2.bias.copy_(part.chosen.bias)
    torch.testing.assert_close(run(part, x), dense(x, LayerContext()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("quantized", [0.0, 1.0])
def test_training_masks_whole_experts_with_the_gradient_of_their_softmax(quantized: float) -> None:
    part, x = make(temperature=0.0, quantized=quantized).train(), inputs().requires_grad_()
    p = part.chosen.controller(x).softmax(dim=-1)
    one_hot = torch.zeros_like(p).scatter(-1, p.argmax(dim=-1, keepdim=True), 1.0)
    outputs = [masked_dense(part, x, one_hot + p - p.detach() if quantized else p), run(part, x)]
    torch.testing.assert_close(*outputs, rtol=1e-12, atol=1e-12)
    expected, found = (torch.autograd.grad(out.square().sum(), [x, *part.parameters()]) for out in outputs)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_a_choosing_call_without_noise_is_evaluation() -> None:
    part, x = make(temperature=0.0, quantized=1.0), inputs()
    torch.testing.assert_close(run(part.train(), x), run(part.eval(), x), rtol=1e-12, atol=1e-12)


@for_each("options", [{"experts": 6}, {"temperature": 5.0}, {"quantized": 0.0}, {"activation_dropout": 0.5}])
def test_every_option_changes_what_training_computes(options: dict[str, Any]) -> None:
    outputs = []
    for given in ({}, options):
        part = make(**{"quantized": 1.0, **given}).train()
        torch.manual_seed(1)
        outputs.append(run(part, inputs()))
    assert not torch.allclose(*outputs)
