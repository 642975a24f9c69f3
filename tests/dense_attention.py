"""Attention that holds the whole matrix of weights, beside which sparse kinds are tested."""

from collections.abc import Callable

import torch
from hypothesis import strategies as st
from torch import Tensor

from pyramidions.nn.attention import CoreAttention
from pyramidions.nn.sublayer import LayerContext

HEADS = 3
#: of the length of a document: what is added to the scores of each head, -inf where nothing is seen, (H or 1, L, L)
Bias = Callable[[int], Tensor]


def some_padding(data: st.DataObject, longest: int = 150, at_the_end: bool = False) -> Tensor:
    """Draw which positions of a batch are padding, never all of a document: (B, L)."""
    length, batch = data.draw(st.integers(1, longest)), data.draw(st.integers(1, 3))
    if at_the_end:
        real = data.draw(st.lists(st.integers(1, length), min_size=batch, max_size=batch))
        return torch.arange(length) >= torch.tensor(real)[:, None]
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 9)))
    padding = torch.rand(batch, length, generator=generator) < data.draw(st.sampled_from([0.0, 0.2, 0.7]))
    padding[:, data.draw(st.integers(0, length - 1))] = False
    return padding


def dense_weights(q: Tensor, k: Tensor, bias: Tensor, padding: Tensor) -> Tensor:
    """Return the weights of one document: (H, L, E) x 2, (H or 1, L, L), (L,) -> (H, L, L)."""
    scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5 + bias
    # A row that sees nothing is padding, and never read.
    scores = scores.masked_fill(padding, -torch.inf)
    return scores.masked_fill(scores.amax(dim=-1, keepdim=True).eq(-torch.inf), 0.0).softmax(dim=-1)


def assert_is_dense(kind: CoreAttention, bias: Bias, padding: Tensor, alone: bool = False) -> None:
    """Compare a kind with dense attention: what is mixed, gradients of all inputs, and what is received.

    Args:
        kind: without dropout.
        bias: of the dense attention.
        padding: (B, L).
        alone: the bias is that of a document without its padding, which is at its end.
    """
    batch, length = padding.shape
    generator = torch.Generator().manual_seed(length)
    q, k, v = (
        torch.randn(batch, HEADS, length, 4, generator=generator, dtype=torch.float64).requires_grad_()
        for _ in range(3)
    )
    mixed, rows = kind(q, k, v, LayerContext(padding)), []
    for document in range(batch):
        count = int((~padding[document]).sum()) if alone else length
        whole = torch.zeros(1, length, length, dtype=torch.float64).expand(bias(count).size(0), -1, -1).clone()
        whole[:, :count, :count] = bias(count)
        rows.append(dense_weights(q[document], k[document], whole, padding[document]))
    weights = torch.stack(rows)
    real = ~padding[:, None, :, None].expand_as(mixed)
    torch.testing.assert_close(mixed[real], (weights @ v)[real])
    grad = torch.randn(mixed.shape, generator=generator, dtype=torch.float64).masked_fill(~real, 0.0)
    found, expected = (torch.autograd.grad(out, (q, k, v), grad, retain_graph=True) for out in (mixed, weights @ v))
    torch.testing.assert_close(found, expected)
    columns = weights.masked_fill(padding[:, None, :, None], 0.0).sum(dim=(1, 2)).masked_fill(padding, 0.0)
    received = kind.received(q.detach(), k.detach(), LayerContext(padding))
    torch.testing.assert_close(received.double(), columns.detach(), rtol=0, atol=1e-4)
