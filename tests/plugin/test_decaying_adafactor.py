"""Adafactor against the formulas of its paper, and with weight decay that ends."""

from argparse import ArgumentParser, Namespace
from typing import Any

import torch
from refusals import refused
from torch import Tensor

from pyramidions.plugin.decaying_adafactor import FairseqDecayingAdafactor


def made(weights: list[Tensor], **options: Any) -> FairseqDecayingAdafactor:
    given = ArgumentParser()
    FairseqDecayingAdafactor.add_args(given)
    args = Namespace(**{**vars(given.parse_args(["--scale-parameter"])), "lr": [0.01], **options})
    return FairseqDecayingAdafactor(args, weights)


def rms(x: Tensor) -> Tensor:
    return x.square().mean().sqrt()


def test_it_updates_as_the_paper_says() -> None:
    torch.manual_seed(0)
    weights = [torch.nn.Parameter(torch.randn(3, 4)), torch.nn.Parameter(torch.randn(5))]
    optimizer = made(weights, weight_decay=0.1, weight_decay_updates=2)
    expected = [weight.detach().clone() for weight in weights]
    rows, columns, squares = torch.zeros(3), torch.zeros(4), torch.zeros(5)
    for update in range(1, 4):
        forgotten = update**-0.8
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        matrix, vector = (weight.grad for weight in weights)
        assert matrix is not None and vector is not None
        rows += forgotten * (matrix.square().mean(1) - rows)
        columns += forgotten * (matrix.square().mean(0) - columns)
        squares += forgotten * (vector.square() - squares)
        steps = [matrix / (rows[:, None] * columns / rows.mean()).sqrt(), vector / squares.sqrt()]
        decay = 0.1 * max(0, 1 - (update - 1) / 2)
        for weight, step in zip(expected, steps, strict=True):
            size = 0.01 * rms(weight).clamp(min=1e-3)
            weight.add_(-decay * weight - size * step / rms(step).clamp(min=1))
        optimizer.step()
        for weight, wanted in zip(weights, expected, strict=True):
            torch.testing.assert_close(weight.detach(), wanted, rtol=1e-5, atol=1e-6)


def test_every_tensor_has_the_rate_of_the_schedule_times_its_own_size() -> None:
    weights = [torch.nn.Parameter(torch.full((4, 4), 0.1)) for _ in range(4)]
    optimizer = made(weights)
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    optimizer.step()
    assert optimizer.get_lr() == 0.01
    for weight in weights:
        torch.testing.assert_close(weight.detach(), torch.full((4, 4), 0.099))


def test_a_resumed_training_goes_on_bit_for_bit_with_the_decay_where_it_was() -> None:
    def run(weight: Tensor, optimizer: FairseqDecayingAdafactor, updates: range) -> None:
        for update in updates:
            weight.grad = torch.full_like(weight, float(update + 1)).cumsum(0)
            optimizer.step()

    settings = {"weight_decay": 0.1, "weight_decay_updates": 4}
    whole, first = (torch.nn.Parameter(torch.ones(3, 2)) for _ in range(2))
    run(whole, made([whole], **settings), range(5))
    optimizer = made([first], **settings)
    run(first, optimizer, range(2))
    second = torch.nn.Parameter(first.detach().clone())
    resumed = made([second], **settings)
    resumed.load_state_dict(optimizer.state_dict())
    run(second, resumed, range(2, 5))
    assert torch.equal(whole, second)


def test_options_that_mean_nothing_are_refused() -> None:
    for option, value in (
        ("weight_decay", 1.0),
        ("weight_decay_updates", -1),
        ("relative_step", True),
        ("adafactor_eps", "print(1)"),
    ):
        with refused(f"--{option.replace('_', '-')} "):
            made([torch.nn.Parameter(torch.ones(2))], **{option: value})
    # fairseq itself refuses weights of 16 bits.
    assert not made([torch.nn.Parameter(torch.ones(2))]).supports_memory_efficient_fp16


def test_without_an_end_weight_decay_stays() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = made([weight], weight_decay=0.5)
    for _ in range(3):
        weight.grad = torch.zeros(2)
        optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.full((2,), 0.125))
