"""Feed-forward parts that choose one unit of each block, or one expert, beside masked dense products."""

from typing import Any

import pytest
import torch
from noise import add_noise
from small_parts import vectors
from torch import Tensor
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from pyramidions.nn.feed_forward import ExpertsFeedForward, SparseFeedForward
from pyramidions.nn.sublayer import LayerContext

DIM, WIDTH = 6, 24
Part = SparseFeedForward | ExpertsFeedForward
CHOOSING: dict[str, Any] = {"temperature": 0.0, "quantized": 1.0}
kinds = pytest.mark.parametrize("kind", [SparseFeedForward, ExpertsFeedForward])


def make(kind: type[Part] = SparseFeedForward, size: int = 4, width: int = WIDTH, **options: Any) -> Part:
    """Return a part with blocks of that size, or with so many experts."""
    torch.manual_seed(0)
    made = kind(DIM, width, size, **options).double()
    add_noise(made, 0.3)
    return made


def run(part: Part, x: Tensor) -> Tensor:
    return part(x, LayerContext())


def inputs(length: int = 7) -> Tensor:
    return vectors(2, length, DIM).double()


def logits_of(part: Part, x: Tensor) -> Tensor:
    """Return the logits of choices: (B, L, D) -> (B, L, blocks, units) or (B, L, experts)."""
    controller = part.chosen.controller
    if isinstance(part, ExpertsFeedForward):
        logits: Tensor = controller(x)
        return logits
    return (x @ controller.down.T @ controller.up + controller.bias).unflatten(-1, (-1, part.chosen.choices))


def masked_dense(part: Part, x: Tensor, mask: Tensor) -> Tensor:
    """Compute every unit, and multiply it by its number of ``mask``, which has the shape of the logits, before ReLU."""
    chosen = part.chosen
    if isinstance(part, ExpertsFeedForward):
        mask = mask.repeat_interleave(len(chosen.into) // mask.size(-1), dim=-1)[..., None]
    return ((x @ chosen.into.T) * mask.flatten(-2)).relu() @ chosen.out_of + chosen.bias


def one_hot(logits: Tensor) -> Tensor:
    return torch.zeros_like(logits).scatter(-1, logits.argmax(dim=-1, keepdim=True), 1.0)


def assert_alike(found: Tensor, expected: Tensor, learning: list[Tensor]) -> None:
    """Compare outputs and gradients."""
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    ours, theirs = (torch.autograd.grad(out.square().sum(), learning) for out in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("kind", "size", "options"),
    [
        (SparseFeedForward, 4, {}),
        (SparseFeedForward, 3, {"width": 6, "rank": 5}),
        (SparseFeedForward, 300, {"width": 300}),
        (ExpertsFeedForward, 2, {}),
        (ExpertsFeedForward, 24, {}),
        (ExpertsFeedForward, 1, {}),
    ],
)
def test_evaluation_is_a_dense_product_behind_a_one_hot_mask(
    kind: type[Part], size: int, options: dict[str, int]
) -> None:
    part, x = make(kind, size, **options).eval(), inputs().requires_grad_()
    # The controller gets no gradient.
    learning = [x, *(weight for name, weight in part.named_parameters() if "controller" not in name)]
    assert_alike(run(part, x), masked_dense(part, x, one_hot(logits_of(part, x))), learning)


@kinds
@pytest.mark.parametrize("quantized", [0.0, 1.0])
def test_training_multiplies_by_a_softmax_or_chooses_with_its_gradient(kind: type[Part], quantized: float) -> None:
    part, x = make(kind, temperature=0.0, quantized=quantized).train(), inputs().requires_grad_()
    p = logits_of(part, x).softmax(dim=-1)
    mask = one_hot(p).detach() + p - p.detach() if quantized else p
    assert_alike(run(part, x), masked_dense(part, x, mask), [x, *part.parameters()])


def test_gradients_with_dropout_are_those_of_differences() -> None:
    part, x = make(width=8, quantized=0.0, activation_dropout=0.3).train(), inputs(2).requires_grad_()
    learning = dict(part.named_parameters())

    def through(x: Tensor, *weights: Tensor) -> Tensor:
        torch.manual_seed(3)
        out: Tensor = functional_call(part, dict(zip(learning, weights, strict=True)), (x, LayerContext()))
        return out

    assert torch.autograd.gradcheck(through, (x, *learning.values()))


def test_about_three_in_ten_calls_choose() -> None:
    part, x = make().train(), inputs(1)[:1]
    soft, chose = run(make(quantized=0.0).train(), x), 0
    with torch.no_grad():
        for seed in range(1000):
            torch.manual_seed(seed)
            chose += not run(part, x).equal(soft)
    # three standard deviations
    assert 0.256 <= chose / 1000 <= 0.344


@kinds
@pytest.mark.parametrize("options", [{"temperature": 5.0}, {"activation_dropout": 0.5}])
def test_noise_and_dropout_act_in_training(kind: type[Part], options: dict[str, float]) -> None:
    outputs = []
    for given in ({}, options):
        part = make(kind, **{"quantized": 1.0, **given}).train()
        torch.manual_seed(1)
        outputs.append(run(part, inputs()))
    assert not torch.allclose(*outputs)


def test_the_rank_is_the_number_of_blocks_unless_given() -> None:
    for rank, expected in ((None, 6), (3, 3)):
        controller = make(rank=rank).chosen.controller
        assert controller.down.shape == (expected, DIM) and controller.up.shape == (expected, WIDTH)


@pytest.mark.parametrize(("length", "gradients"), [(1, False), (100, True)])
def test_evaluation_multiplies_the_controller_and_the_chosen_rows_alone(length: int, gradients: bool) -> None:
    part = make(size=16, width=96).eval()
    with FlopCounterMode(display=False) as counted, torch.set_grad_enabled(gradients):
        run(part, inputs(length))
    # Weighted sums of rows behind ReLU are no matrix products.
    assert counted.get_total_flops() == 2 * 2 * length * (DIM * 6 + 6 * 96 + 6 * DIM)


@pytest.mark.parametrize(("dtype", "training"), [(torch.bfloat16, True), (torch.float16, True), (torch.float16, False)])
def test_under_autocast_units_are_chosen_in_full_precision(dtype: torch.dtype, training: bool) -> None:
    part, x = make(**CHOOSING).float().train(training), inputs(50).float().requires_grad_()
    with torch.no_grad():
        # Half precision would round the differences between logits away.
        part.chosen.controller.bias.add_(64.0)
    expected = run(part, x)
    with torch.autocast("cpu", dtype):
        found = run(part, x)
    assert found.dtype == dtype
    # Another choice would differ by more than rounding.
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
    of = [weight for name, weight in part.named_parameters() if training or "controller" not in name]
    pairs = zip(*(torch.autograd.grad(out.float().sum(), of) for out in (found, expected)), strict=True)
    assert all((ours - theirs).abs().max() < 0.05 * theirs.abs().max() for ours, theirs in pairs)
