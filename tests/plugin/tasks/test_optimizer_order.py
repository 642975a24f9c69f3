"""A run goes on exactly where the checkpoint lists the parameters in another order than the model."""

from copy import deepcopy
from typing import Any

import pytest
import torch
from fairseq import optim
from fairseq.optim.adam import FairseqAdamConfig
from omegaconf import DictConfig, OmegaConf
from torch import Tensor, nn

from pyramidions.plugin.tasks.optimizer_order import ParameterOrder, ResumedOrder

OLD, NEW = ("attention", "feed_forward", "norm", "output"), ("norm", "attention", "output", "feed_forward")


class Toy(nn.Module):
    """Parameters of different shapes, one of them shared, and a buffer, as children in any order."""

    def __init__(self, order: tuple[str, ...]) -> None:
        super().__init__()
        torch.manual_seed(3)
        parts = {"attention": nn.Linear(4, 4), "feed_forward": nn.Linear(4, 6), "norm": nn.LayerNorm(4)}
        parts["output"] = nn.Linear(4, 4, bias=False)
        parts["output"].weight = parts["attention"].weight
        for name in order:
            self.add_module(name, parts[name])
        self.register_buffer("vocabulary", torch.tensor(7))

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(x + self.attention(x))
        return self.feed_forward(self.output(x))


def names(order: tuple[str, ...]) -> list[str]:
    return list(Toy(order).state_dict())


def batch(step: int) -> Tensor:
    return torch.randn(5, 4, generator=torch.Generator().manual_seed(step))


def train(model: nn.Module, optimizer: Any, steps: range) -> None:
    for step in steps:
        optimizer.zero_grad()
        loss = model(batch(step).to(next(model.parameters()).dtype)).float().pow(2).sum()
        optimizer.backward(loss) if hasattr(optimizer, "backward") else loss.backward()
        optimizer.step()


def assert_same(model: nn.Module, other: nn.Module) -> None:
    own = other.state_dict()
    assert all(torch.equal(weight, own[name]) for name, weight in model.state_dict().items())


def test_a_shared_parameter_counts_where_it_comes_first_and_a_frozen_one_nowhere() -> None:
    assert names(OLD) != names(NEW)
    # The checkpoint: attention's weight and bias, the feed-forward's, the norm's. The model: norm, attention,
    # feed-forward.
    expected = ParameterOrder([4, 4, 16, 4, 24, 6], [4, 5, 0, 1, 2, 3])
    assert ParameterOrder.of(Toy(NEW), names(OLD)) == expected
    assert ParameterOrder.of(Toy(NEW), names(NEW)).places == [0, 1, 2, 3, 4, 5]
    frozen = Toy(NEW)
    frozen.feed_forward.requires_grad_(False)
    assert ParameterOrder.of(frozen, names(OLD)) == ParameterOrder([4, 4, 16, 4], [2, 3, 0, 1])
    # What the checkpoint lacks is an error.
    with pytest.raises(KeyError):
        ParameterOrder.of(Toy(NEW), [name for name in names(OLD) if name != "norm.bias"])


def test_one_entry_a_parameter_moves_with_it_and_those_of_a_criterion_stay() -> None:
    state = {"state": {0: "a", 1: "b", 3: "criterion"}, "param_groups": [{"params": [0, 1, 2, 3]}], "loss_scale": 4}
    # The third parameter had no gradient so far.
    moved = ParameterOrder([1, 1, 1], [2, 0, 1]).restore(state)
    assert moved == {**state, "state": {1: "a", 2: "b", 3: "criterion"}}


def test_stretches_of_a_flat_tensor_move_and_the_rest_stays() -> None:
    flat = torch.tensor([1.0, 1, 1, 2, 3, 3, 9])
    state = {"state": {0: {"step": 5, "mean": flat}}, "param_groups": [{"params": [0]}]}
    moved = ParameterOrder([1, 2, 3], [1, 2, 0]).restore(state)
    assert moved["state"][0]["step"] == 5
    assert moved["state"][0]["mean"].tolist() == [2, 3, 3, 1, 1, 1, 9]


def fp16_config() -> DictConfig:
    common = {"bf16": False, "fp16_init_scale": 4, "fp16_scale_window": 100, "fp16_scale_tolerance": 0.0}
    return OmegaConf.create(
        {
            "common": {**common, "threshold_loss_scale": None, "min_loss_scale": 1e-4},
            "optimizer": {**vars(FairseqAdamConfig()), "_name": "adam", "lr": [0.01], "tpu": False},
        }
    )


def flat_fp16(model: nn.Module) -> Any:
    """fairseq's optimizer of --fp16, whose one parameter holds all of the model's; its own constructor needs a GPU."""
    parameters, config = list(model.parameters()), fp16_config()
    flat = nn.Parameter(torch.cat([parameter.detach().float().flatten() for parameter in parameters]))
    flat.grad = torch.zeros_like(flat)
    return optim.FP16Optimizer(config, parameters, optim.build_optimizer(config.optimizer, [flat]), {None: flat})


def memory_efficient_fp16(model: nn.Module) -> Any:
    return optim.MemoryEfficientFP16Optimizer.build_optimizer(fp16_config(), list(model.parameters()))


@pytest.mark.parametrize("build", [flat_fp16, memory_efficient_fp16])
def test_fairseqs_half_precision_goes_on_as_it_would_have(build: Any) -> None:
    old, new = Toy(OLD).half(), Toy(NEW).half()
    before = build(old)
    train(old, before, range(3))
    resumed = ResumedOrder(new)
    new.load_state_dict(old.state_dict())
    # As fairseq does it: the optimizer is built anew, of what the checkpoint holds in half precision.
    after, went_on = build(new), build(old)
    after.load_state_dict(deepcopy(before.state_dict()))
    went_on.load_state_dict(deepcopy(before.state_dict()))
    resumed.restore(after)
    train(old, went_on, range(3, 6))
    train(new, after, range(3, 6))
    assert_same(old, new)
    assert after.optimizer.state_dict()["state"][0]["exp_avg"].dtype == torch.float32


def test_the_state_is_reordered_once() -> None:
    model = Toy(NEW)
    resumed, optimizer = ResumedOrder(model), torch.optim.Adam(model.parameters())
    train(model, optimizer, range(1))
    model.load_state_dict({name: model.state_dict()[name] for name in names(OLD)})
    before = optimizer.state_dict()["state"]
    for _ in range(2):
        resumed.restore(optimizer)
        assert torch.equal(optimizer.state_dict()["state"][0]["exp_avg"], before[4]["exp_avg"])
    # Without a state there is nothing to reorder.
    resumed, optimizer = ResumedOrder(model), torch.optim.Adam(model.parameters())
    model.load_state_dict({name: model.state_dict()[name] for name in names(OLD)})
    resumed.restore(optimizer)
    assert optimizer.state_dict()["state"] == {}
