"""Head-wise positional strides, against a dense mask for each head."""

import pytest
import torch
from noise import add_noise
from small_parts import ends_after, vectors
from torch import Tensor

from pyramidions.nn.attention import CrossAttention, FullAttention, HeposAttention
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import LayerContext, Memory

DIM, HEADS = 16, 4
NOWHERE = ends_after(13, 2, 0)
ANYWHERE = torch.rand(3, 13, generator=torch.Generator().manual_seed(2)) < 0.5
# A memory of one vector, of fewer than a stride, of as many as divide it, and of more; padded at its end or anywhere.
CASES: list[tuple[int, int, Tensor | None]] = [
    *((4, 1, None), (4, 3, ends_after(3, 1, 0)), (4, 8, None), (4, 13, NOWHERE), (4, 13, ANYWHERE)),
    *((2, 7, None), (2, 13, ANYWHERE), (1, 13, NOWHERE), (1, 4, None)),
]


def make(stride: int) -> CrossAttention:
    torch.manual_seed(0)
    made = CrossAttention(DenseProjections(DIM, HEADS), HeposAttention(HEADS, stride))
    add_noise(made, 0.1)
    return made.eval()


def reading(memory: Tensor, padding: Tensor | None = None) -> LayerContext:
    return LayerContext(None, (Memory(memory, padding),))


@pytest.mark.parametrize(("stride", "length", "padding"), CASES)
def test_each_head_attends_to_its_own_positions(stride: int, length: int, padding: Tensor | None) -> None:
    attention = make(stride).double()
    x, memory = (vectors(3, n, DIM, seed=n).double().requires_grad_() for n in (5, length))
    # (B or 1, H, 1, K)
    allowed = ((torch.arange(length) - torch.arange(HEADS)[:, None]) % stride == 0)[None, :, None]
    allowed = allowed if padding is None else allowed & ~padding[:, None, None]
    # A head without a key reads nothing, and has no NaN of an empty softmax.
    busy = allowed.any(dim=-1, keepdim=True)
    q, (k, v) = attention.projections.queries(x), attention.projections.keys_values(memory)
    weights = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(~allowed & busy, -torch.inf).softmax(-1)
    weights = weights.masked_fill(~busy, 0.0)
    expected, found = attention.projections.output(weights @ v), attention(x, reading(memory, padding))
    torch.testing.assert_close(found, expected)
    keys, values, mask = attention.attention.keys_values(attention.projections, Memory(memory, padding))
    # Only what a head reads is projected, and kept by a decoder.
    assert keys.shape == values.shape == (3, HEADS, -(-length // stride), DIM // HEADS)
    # A softmax over nothing would be NaN to some kernels.
    assert mask is None or mask.isfinite().any(dim=-1).all()
    torch.testing.assert_close(attention.weights(x, reading(memory, padding)).float(), weights.float())
    learning = (x, memory, *attention.parameters())
    grads = (torch.autograd.grad(out.square().sum(), learning, materialize_grads=True) for out in (found, expected))
    torch.testing.assert_close(*grads)
    if stride == 1:
        full = CrossAttention(attention.projections, FullAttention())
        real = slice(None) if padding is None else ~padding.all(dim=1)
        torch.testing.assert_close(found[real], full(x, reading(memory, padding))[real])
