"""The sparse feed-forward part beside dense products, loops and gradients by hand."""

from typing import Any

import pytest
import torch
from small_parts import vectors
from tables import for_each
from torch import Tensor
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from pyramidions.nn.feed_forward import DenseFeedForward, SparseFeedForward
from pyramidions.nn.sublayer import LayerContext

DIM, WIDTH, BLOCK = 6, 24, 4


def make(width: int = WIDTH, block_size: int = BLOCK, embed_dim: int = DIM, **options: Any) -> SparseFeedForward:
    torch.manual_seed(0)
    made = SparseFeedForward(embed_dim, width, block_size, **options).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
    return made


def run(part: SparseFeedForward, x: Tensor) -> Tensor:
    return part(x, LayerContext())


def inputs(length: int = 7, embed_dim: int = DIM) -> Tensor:
    return vectors(2, length, embed_dim).double()


def logits_of(part: SparseFeedForward, x: Tensor) -> Tensor:
    """Return the logits of all units: (B, L, F) as (B, L, F / N, N)."""
    controller = part.chosen.controller
    return (x @ controller.down.T @ controller.up + controller.bias).unflatten(-1, (-1, part.chosen.choices))


def masked_dense(part: SparseFeedForward, x: Tensor, mask: Tensor) -> Tensor:
    """Compute every unit and multiply it by ``mask`` before ReLU."""
    weights = part.chosen
    return ((x @ weights.into.T) * mask.flatten(-2)).relu() @ weights.out_of + weights.bias


def one_hot(logits: Tensor) -> Tensor:
    return torch.zeros_like(logits).scatter(-1, logits.argmax(dim=-1, keepdim=True), 1.0)


def by_loops(part: SparseFeedForward, x: Tensor) -> Tensor:
    out, weights = torch.empty_like(x), part.chosen
    for place in [(row, column) for row in range(x.size(0)) for column in range(x.size(1))]:
        total, logits = weights.bias.detach().clone(), logits_of(part, x[place]).detach()
        for block in range(logits.size(0)):
            best = max(range(logits.size(1)), key=lambda unit, of=logits[block]: float(of[unit]))
            unit = block * logits.size(1) + best
            total += torch.dot(weights.into[unit], x[place]).clamp_min(0).detach() * weights.out_of[unit].detach()
        out[place] = total
    return out


@for_each("training", [False, True])
@for_each("quantized", [0.0, 1.0])
def test_blocks_of_one_unit_are_the_dense_part_with_the_same_weights(training: bool, quantized: float) -> None:
    part, x = make(block_size=1, quantized=quantized).train(training), inputs()
    dense = DenseFeedForward(DIM, WIDTH).double()
    with torch.no_grad():
        dense.fc1.weight.copy_(part.chosen.into)
        dense.fc2.weight.copy_(part.chosen.out_of.T)
        dense.fc2.bias.copy_(part.chosen.bias)
    torch.testing.assert_close(run(part, x), dense(x, LayerContext()), rtol=1e-12, atol=1e-12)


@for_each(("width", "block_size", "rank"), [(24, 4, None), (24, 24, 1), (6, 3, 5), (300, 300, None)])
def test_gathered_rows_are_a_masked_dense_product_and_a_loop(width: int, block_size: int, rank: int | None) -> None:
    part, x = make(width, block_size, rank=rank).eval(), inputs()
    found = run(part, x)
    torch.testing.assert_close(found, masked_dense(part, x, one_hot(logits_of(part, x))), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(found, by_loops(part, x), rtol=1e-12, atol=1e-12)


def test_weighting_calls_multiply_all_units_by_a_softmax_within_their_block() -> None:
    part, x = make(quantized=0.0).train(), inputs()
    expected = masked_dense(part, x, logits_of(part, x).softmax(dim=-1))
    torch.testing.assert_close(run(part, x), expected, rtol=1e-12, atol=1e-12)


def test_a_choosing_call_without_noise_is_evaluation() -> None:
    part, x = make(temperature=0.0, quantized=1.0), inputs()
    torch.testing.assert_close(run(part.train(), x), run(part.eval(), x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("training", [False, True])
def test_at_most_one_unit_of_each_block_is_not_zero(training: bool) -> None:
    most = WIDTH // BLOCK
    part, x = make(embed_dim=WIDTH, quantized=1.0).train(training), inputs(embed_dim=WIDTH)
    with torch.no_grad():
        # So that the output is the hidden units.
        part.chosen.out_of.copy_(torch.eye(WIDTH))
        part.chosen.bias.zero_()
    hidden = run(part, x).unflatten(-1, (-1, BLOCK))
    assert ((hidden != 0).sum(dim=-1) <= 1).all() and most >= (hidden != 0).sum(dim=(-2, -1)).max() > 1
    part.chosen.quantized = 0.0
    assert (run(part.train(), x) != 0).sum(dim=-1).max() > most


@pytest.mark.parametrize("quantized", [0.0, 1.0])
def test_the_gradient_of_the_controller_is_that_by_hand(quantized: float) -> None:
    part, x, seen = make(temperature=0.0, quantized=quantized).train(), inputs(1), []
    part.chosen.controller.register_forward_hook(lambda module, given, out: (out.retain_grad(), seen.append(out))[1])
    out = run(part, x)
    out.square().sum().backward()
    # (T, D), (T, B, N)
    of_out, logits = 2 * out.detach().flatten(0, 1), logits_of(part, x.flatten(0, 1)).detach()
    p = logits.softmax(dim=-1).tolist()
    mask = one_hot(logits).tolist() if quantized else p
    hidden = (x.flatten(0, 1) @ part.chosen.into.T).detach().view_as(logits).tolist()
    # What a unit above 0 gets: (T, B, N)
    of_hidden = (of_out @ part.chosen.out_of.T).detach().view_as(logits).tolist()
    found = seen[0].grad.view_as(logits).tolist()
    for place, block in [(place, block) for place in range(2) for block in range(WIDTH // BLOCK)]:
        q, h, m, g = (of[place][block] for of in (p, hidden, mask, of_hidden))
        # Not what ReLU stops: a unit that is masked or below 0.
        of_mask = [h[s] * g[s] if h[s] * m[s] > 0 else 0.0 for s in range(BLOCK)]
        for j in range(BLOCK):
            expected = sum(q[j] * ((j == s) - q[s]) * of_mask[s] for s in range(BLOCK))
            assert found[place][block][j] == pytest.approx(expected, rel=1e-10, abs=1e-12)


@for_each(("training", "dropout"), [(True, 0.0), (True, 0.3), (False, 0.0)])
def test_gradients_are_those_of_differences(training: bool, dropout: float) -> None:
    part, x = make(8, quantized=0.0, activation_dropout=dropout).train(training), inputs(2).requires_grad_()
    # Evaluation gives the controller none.
    learning = {name: w for name, w in part.named_parameters() if training or "controller" not in name}

    def through(x: Tensor, *weights: Tensor) -> Tensor:
        torch.manual_seed(3)
        out: Tensor = functional_call(part, dict(zip(learning, weights, strict=True)), (x, LayerContext()))
        return out

    assert torch.autograd.gradcheck(through, (x, *learning.values()))


def test_a_choosing_call_has_the_gradients_of_a_one_hot_mask_and_those_of_the_softmax() -> None:
    part, x = make(temperature=0.0, quantized=1.0).train(), inputs().requires_grad_()
    p = logits_of(part, x).softmax(dim=-1)
    straight_through = one_hot(p).detach() + p - p.detach()
    of = [x, *part.parameters()]
    expected, found = (
        torch.autograd.grad(out.square().sum(), of) for out in (masked_dense(part, x, straight_through), run(part, x))
    )
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def test_about_three_in_ten_calls_choose() -> None:
    part, x = make(), inputs(1)[:1]
    soft, chose = run(make(quantized=0.0).train(), x), 0
    with torch.no_grad():
        for seed in range(2000):
            torch.manual_seed(seed)
            chose += not run(part.train(), x).equal(soft)
    assert 0.27 <= chose / 2000 <= 0.33


def test_a_call_that_does_not_choose_draws_no_noise() -> None:
    part, x = make(quantized=0.0).train(), inputs()
    torch.manual_seed(5)
    run(part, x)
    after = torch.rand(())
    torch.manual_seed(5)
    torch.rand(())
    assert torch.rand(()).equal(after)


@for_each(
    "options", [{"block_size": 6}, {"rank": 2}, {"temperature": 3.0}, {"quantized": 0.0}, {"activation_dropout": 0.5}]
)
def test_every_option_changes_what_training_computes(options: dict[str, Any]) -> None:
    outputs = []
    for given in ({}, options):
        part = make(**{"quantized": 1.0, **given}).train()
        torch.manual_seed(1)
        outputs.append(run(part, inputs()))
    assert not torch.allclose(*outputs)


@pytest.mark.parametrize(("rank", "expected"), [(None, 6), (3, 3)])
def test_the_rank_is_the_number_of_blocks_unless_given(rank: int | None, expected: int) -> None:
    controller = make(rank=rank).chosen.controller
    assert controller.down.shape == (expected, DIM) and controller.up.shape == (expected, WIDTH)


@for_each("gradients", [False, True])
@for_each("length", [1, 100])
def test_evaluation_multiplies_the_controller_and_the_chosen_rows_alone(length: int, gradients: bool) -> None:
    part = make(width=96, block_size=16).eval()
    with FlopCounterMode(display=False) as counted, torch.set_grad_enabled(gradients):
        run(part, inputs(length))
    # Weighted sums of rows behind ReLU are no matrix products.
    assert counted.get_total_flops() == 2 * 2 * length * (DIM * 6 + 6 * 96 + 6 * DIM)


@for_each("dtype", [torch.bfloat16, torch.float16])
@for_each("training", [False, True])
def test_under_autocast_units_are_chosen_in_full_precision(dtype: torch.dtype, training: bool) -> None:
    part, x = make(temperature=0.0, quantized=1.0).float().train(training), inputs(50).float().requires_grad_()
    expected = run(part, x)
    with torch.autocast("cpu", dtype):
        found = run(part, x)
    assert found.dtype == dtype
    # Another choice would differ by more than rounding.
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
    of = [weight for name, weight in part.named_parameters() if training or "controller" not in name]
    pairs = zip(*(torch.autograd.grad(out.float().sum(), of) for out in (found, expected)), strict=True)
    assert all((ours - theirs).abs().max() < 0.05 * theirs.abs().max() for ours, theirs in pairs)
