"""Scorers that learn at a multiple of the learning rate, by fairseq's own optimizers."""

from typing import Any

import pytest
import torch
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from fairseq.optim.composite import FairseqCompositeOptimizer
from omegaconf import OmegaConf
from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.nn.scorer import LinearScorer
from pyramidions.plugin.tasks.learning import ScorerRate


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.before, self.scorer, self.behind = nn.Linear(4, 4), LinearScorer(4), nn.Linear(4, 1)

    def step(self, optimizer: FairseqAdam, update: int) -> None:
        optimizer.zero_grad()
        x = self.before(torch.randn(5, 4, generator=torch.Generator().manual_seed(update)))
        (self.scorer.logits(x) * self.behind(x).squeeze(-1)).square().sum().backward()
        optimizer.step()


def adam(parameters: Any, lr: float) -> FairseqAdam:
    config = {"lr": [lr], "weight_decay": 0.1, "adam_betas": "(0.9, 0.98)", "tpu": False}
    return FairseqAdam(OmegaConf.structured(FairseqAdamConfig(**config)), list(parameters))


def test_a_step_of_scorers_is_adams_at_that_multiple_of_the_rate_and_others_are_as_ever() -> None:
    scaled, slow, fast = Model(), Model(), Model()
    optimizers = [adam(scaled.parameters(), 1e-3), adam(slow.parameters(), 1e-3), adam(fast.parameters(), 1e-2)]
    ScorerRate(scaled, 10).follow(optimizers[0])
    for model, optimizer in zip((scaled, slow, fast), optimizers, strict=True):
        model.step(optimizer, 1)
    for name, weight in scaled.named_parameters():
        expected = (fast if name.startswith("scorer") else slow).get_parameter(name)
        torch.testing.assert_close(weight, expected, rtol=1e-5, atol=1e-7)
        assert not torch.equal(slow.get_parameter(name), fast.get_parameter(name))


def test_the_rate_follows_the_scheduler() -> None:
    scaled, plain = Model(), Model()
    optimizer, reference = adam(scaled.parameters(), 1.0), adam(plain.parameters(), 1.0)
    ScorerRate(scaled, 4).follow(optimizer)
    for each in (optimizer, reference):
        each.set_lr(1e-3)
    # Another rate for the second is what the first shall do by itself.
    reference.set_lr(4e-3)
    scaled.step(optimizer, 1)
    plain.step(reference, 1)
    torch.testing.assert_close(scaled.scorer.linear.weight, plain.scorer.linear.weight, rtol=1e-5, atol=1e-7)


def test_parameters_in_one_flat_tensor_are_found() -> None:
    # As with --fp16, which wants a GPU.
    model, rate = Model(), 1e-3
    own = list(model.parameters())
    flat = [nn.Parameter(torch.cat([p.detach().flatten() for p in own])) for _ in range(2)]
    for parameter in flat:
        parameter.grad = torch.arange(1.0, len(parameter) + 1)
    optimizers = [adam([parameter], rate) for parameter in flat]
    ScorerRate(model, 3).follow(optimizers[0])
    before = flat[0].detach().clone()
    for optimizer in optimizers:
        optimizer.step()
    scaled, plain = ((parameter.detach() - before).split([p.numel() for p in own]) for parameter in flat)
    for parameter, far, near in zip(own, scaled, plain, strict=True):
        of_scorer = any(parameter is other for other in model.scorer.parameters())
        torch.testing.assert_close(far, 3 * near if of_scorer else near, rtol=1e-3, atol=1e-7)


def test_another_layout_of_the_weights_is_refused() -> None:
    model = Model()
    own = list(model.parameters())
    values = sum(p.numel() for p in own)
    layouts = {
        "one tensor of 7 values": [nn.Parameter(torch.zeros(7))],
        f"one tensor of {values + 3} values": [nn.Parameter(torch.zeros(values + 3))],
        f"{len(own)} tensors of {values} values in another order or number": own[::-1],
        f"{len(own) - 1} tensors of {values - own[-1].numel()} values in another order or number": own[:-1],
    }
    for layout, parameters in layouts.items():
        with pytest.raises(
            UserError, match=f"^--scorer-lr-scale needs .* all their {values} values, .* has {layout}\\.$"
        ):
            ScorerRate(model, 10).follow(adam(parameters, 1e-3))
    # Those of a criterion come behind.
    ScorerRate(model, 10).follow(adam([*own, nn.Parameter(torch.zeros(2))], 1e-3))


def test_a_run_goes_on_bit_for_bit_from_what_fairseq_saves() -> None:
    whole, first = Model(), Model()
    rates = [ScorerRate(whole, 10), ScorerRate(first, 10)]
    optimizers = [adam(whole.parameters(), 1e-3), adam(first.parameters(), 1e-3)]
    for model, optimizer, rate in zip((whole, first), optimizers, rates, strict=True):
        for update in range(3):
            rate.follow(optimizer)
            model.step(optimizer, update)
    resumed = Model()
    resumed.load_state_dict(first.state_dict())
    rate, own = ScorerRate(resumed, 10), adam(resumed.parameters(), 1e-3)
    # fairseq builds a second optimizer once the weights are there.
    rate.follow(own)
    own = adam(resumed.parameters(), 1e-3)
    own.load_state_dict(optimizers[1].state_dict())
    for update in range(3, 6):
        rates[0].follow(optimizers[0])
        whole.step(optimizers[0], update)
        rate.follow(own)
        resumed.step(own, update)
    assert all(torch.equal(weight, resumed.state_dict()[name]) for name, weight in whole.state_dict().items())


def test_frozen_weights_are_no_part_of_the_optimizer() -> None:
    model = Model()
    model.before.requires_grad_(False)
    optimizer = adam((p for p in model.parameters() if p.requires_grad), 1e-3)
    before, weights = model.before.weight.clone(), model.scorer.linear.weight.clone()
    ScorerRate(model, 10).follow(optimizer)
    model.step(optimizer, 1)
    assert torch.equal(model.before.weight, before)
    # Adam's first step is the rate itself.
    torch.testing.assert_close(
        (model.scorer.linear.weight - weights * (1 - 1e-3)).abs(), torch.full_like(weights, 1e-2), rtol=1e-3, atol=0
    )


def test_a_composite_optimizer_is_refused() -> None:
    optimizer = {**vars(FairseqAdamConfig(lr=[1e-3], tpu=False)), "_name": "adam"}
    group = {"optimizer": optimizer, "lr_scheduler": {"_name": "fixed", "warmup_updates": 0, "lr": [1e-3]}}
    config = OmegaConf.create({"groups": {"default": group}, "dynamic_groups": False})
    model = Model()
    composite = FairseqCompositeOptimizer(config, list(model.parameters()))
    with pytest.raises(UserError, match="--scorer-lr-scale needs one optimizer, but --optimizer composes several."):
        ScorerRate(model, 10).follow(composite)
