"""Relative attention beside a double loop over explicit distances."""

import math
from itertools import product

import pytest
import torch
from covering import covering
from live_memory import most_bytes
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from pyramidions.nn.attention import Distances, RelativeAttention, RelativeWindowAttention
from pyramidions.nn.decoder.cache import Lineage
from pyramidions.nn.functional import attention, tiles
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.sublayer import LayerContext

HEADS, WIDTH = 3, 12
UNSEEN = -1e30
#: of windows that learn from distances
WINDOWS: dict[str, dict[str, int]] = {
    "all": {},
    "window": {"window": 4},
    "dilated": {"window": 4, "dilation": 3, "dilated_heads": 1},
    "all dilated": {"window": 2, "dilation": 2, "dilated_heads": 3},
}


def make(dropout: float = 0.0, **options: float) -> RelativeAttention:
    torch.manual_seed(0)
    kind = RelativeWindowAttention if "window" in options else RelativeAttention
    made = kind(WIDTH, HEADS, dropout=dropout, **options).double().eval()  # type: ignore[arg-type]
    with torch.no_grad():
        made.distances.content_bias.normal_()
        made.distances.position_bias.normal_()
    return made


def heads(length: int, batch: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(length)
    q, k, v = (
        torch.randn(batch, HEADS, length, WIDTH // HEADS, generator=generator, dtype=torch.float64) for _ in range(3)
    )
    return q, k, v


def sinusoid(distance: int) -> Tensor:
    frequencies = [10000 ** (-2 * i / WIDTH) for i in range(WIDTH // 2)]
    values = [math.sin(distance * f) for f in frequencies] + [math.cos(distance * f) for f in frequencies]
    # Tables are in single precision.
    return torch.tensor(values, dtype=torch.float32).double()


def explicit(
    kind: RelativeAttention, q: Tensor, k: Tensor, v: Tensor, padding: Tensor | None, is_causal: bool
) -> Tensor:
    """Attend by the formula of each query and key: (B, H, L, E) three times -> (B, H, L, E)."""
    length, rows = q.size(2), []
    for i in range(length):
        row = []
        for j in range(length):
            r = kind.position_proj(sinusoid(i - j)).view(HEADS, -1)
            content = ((q[:, :, i] + kind.distances.content_bias) * k[:, :, j]).sum(-1)
            position = ((q[:, :, i] + kind.distances.position_bias) * r).sum(-1)
            row.append((content + position) / q.size(-1) ** 0.5)
        rows.append(torch.stack(row, dim=-1))
    scores = torch.stack(rows, dim=2)
    if kind.side:
        away = (torch.arange(length)[:, None] - torch.arange(length)).abs()
        strides = torch.tensor([1] * (HEADS - kind.dilated_heads) + [kind.dilation] * kind.dilated_heads)[:, None, None]
        scores = scores.masked_fill((away > kind.side * strides) | (away % strides > 0), UNSEEN)
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), UNSEEN)
    if padding is not None:
        scores = scores.masked_fill(padding[:, None, None], UNSEEN)
    return scores.softmax(-1) @ v


@pytest.mark.parametrize(
    ("length", "is_causal", "padded", "rows", "path", "window"),
    covering(product([1, 2, 7, 12], [True, False], [True, False], [2, 5, 64], ["cpu", "gpu"], WINDOWS)),
)
def test_outputs_and_gradients_are_those_of_explicit_distances(
    length: int, is_causal: bool, padded: bool, rows: int, path: str, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "_ROWS", rows)
    # So few weights that neither all heads nor all documents share a tile.
    monkeypatch.setattr(tiles, "_WEIGHTS", 2 * rows * length)
    monkeypatch.setattr(tiles, "_WEIGHTS_OF_GPU", 2 * rows * length)
    monkeypatch.setattr(attention, "computes_in_tiles", lambda q: path == "cpu")
    kind, given = make(**WINDOWS[window]), [x.requires_grad_() for x in heads(length)]
    padding = torch.arange(length) >= torch.tensor([[length], [max(1, length - 2)]]) if padded else None
    ours, expected = (
        kind(*given, LayerContext(padding, is_causal=is_causal)),
        explicit(kind, *given, padding, is_causal),
    )
    if padding is not None:
        # What a padded query sees is nobody's.
        ours, expected = (out.masked_fill(padding[:, None, :, None], 0) for out in (ours, expected))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-6)
    learned = [*given, *kind.parameters()]
    grad = torch.randn(ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found, right = (torch.autograd.grad(out, learned, grad) for out in (ours, expected))
    torch.testing.assert_close(found, right, rtol=0, atol=1e-5)


def test_layers_that_share_their_biases_add_up_their_gradients() -> None:
    shared = Distances(WIDTH, HEADS).double()
    layers = [RelativeAttention(WIDTH, HEADS, shared).double() for _ in range(2)]
    assert len({id(weight) for layer in layers for weight in layer.distances.parameters()}) == 2
    q, k, v = heads(6)
    alone = [torch.autograd.grad(layer(q, k, v).square().sum(), [*shared.parameters()]) for layer in layers]
    sum(layer(q, k, v).square().sum() for layer in layers).backward()
    for weight, *each in zip(shared.parameters(), *alone, strict=True):
        torch.testing.assert_close(weight.grad, sum(each))


def test_a_window_computes_no_more_than_it_sees() -> None:
    (q, k, v), padding = heads(400), torch.zeros(2, 400, dtype=torch.bool)
    operations = []
    for kind in (make(), make(window=16)):
        with FlopCounterMode(display=False) as counted:
            kind(q, k, v, LayerContext(padding, is_causal=True))
        operations.append(counted.get_total_flops())
    assert operations[1] < 0.5 * operations[0]


@torch.no_grad()
def test_a_step_of_a_long_prompt_equals_a_pass_and_holds_the_weights_of_a_few_queries() -> None:
    kind, (q, k, v) = make(window=4, dilation=2, dilated_heads=1), heads(600, batch=1)
    blocked = Lineage().extend(1, 1, 600, q.device)
    assert blocked is not None
    bias = as_bias(blocked, q)
    torch.testing.assert_close(kind.step(q, k, v, bias, kind.new_state()), kind(q, k, v, LayerContext(is_causal=True)))
    # Of all heads and all pairs, the weights alone would take 8.6 MB.
    assert most_bytes(lambda: kind.step(q, k, v, bias, kind.new_state())) < 6e6


def test_dropout_of_sinusoids_acts_in_training_only() -> None:
    kind, given = make(position_dropout=0.5), heads(6)
    assert kind(*given).equal(make()(*given))
    assert not kind.train()(*given).equal(make()(*given))
