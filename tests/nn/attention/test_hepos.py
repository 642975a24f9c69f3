"""Head-wise positional strides, against a dense mask for each head."""

import itertools

import pytest
import torch
from small_parts import ends_after, vectors
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import CrossAttention, FullAttention, HeposAttention
from pyramidions.nn.projections import DenseProjections, Projections
from pyramidions.nn.sublayer import LayerContext, Memory

DIM, HEADS = 16, 4
lengths = for_each("length", [1, 2, 3, 4, 7, 8, 13])
strides = for_each("stride", [1, 2, 4])


def make(stride: int, dropout: float = 0.0) -> CrossAttention:
    torch.manual_seed(0)
    made = CrossAttention(DenseProjections(DIM, HEADS), HeposAttention(HEADS, stride, dropout))
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.1)
    return made.eval()


def reading(memory: Tensor, padding: Tensor | None = None) -> LayerContext:
    return LayerContext(None, (Memory(memory, padding),))


def seen(stride: int, length: int, padding: Tensor | None) -> Tensor:
    """Return which positions each head reads: (B or 1, H, 1, K)."""
    positions, heads = torch.arange(length), torch.arange(HEADS)[:, None]
    read = ((positions - heads) % stride == 0)[None, :, None]
    return read if padding is None else read & ~padding[:, None, None]


def dense_weights(attention: CrossAttention, x: Tensor, memory: Tensor, allowed: Tensor) -> Tensor:
    q, (k, _) = attention.projections.queries(x), attention.projections.keys_values(memory)
    logits = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(~allowed, -torch.inf)
    # A head without a key reads nothing.
    return logits.softmax(dim=-1).nan_to_num(0.0)


def dense(attention: CrossAttention, x: Tensor, memory: Tensor, allowed: Tensor) -> Tensor:
    values = attention.projections.keys_values(memory)[1]
    return attention.projections.output(dense_weights(attention, x, memory, allowed) @ values)


@strides
@lengths
@for_each("padded", [False, True])
def test_each_head_attends_to_its_own_positions(stride: int, length: int, padded: bool) -> None:
    attention, x, memory = make(stride), vectors(3, 5, DIM), vectors(3, length, DIM, seed=1)
    padding = ends_after(length, max(1, length - 3), 0) if padded else None
    allowed = seen(stride, length, padding)
    context = reading(memory, padding)
    torch.testing.assert_close(attention(x, context), dense(attention, x, memory, allowed))
    weights = attention.weights(x, context)
    assert weights.shape == (3, HEADS, 5, length)
    torch.testing.assert_close(weights, dense_weights(attention, x, memory, allowed).expand_as(weights))


@strides
@torch.no_grad()
def test_padding_may_stand_anywhere(stride: int) -> None:
    attention, x, memory = make(stride), vectors(2, 5, DIM), vectors(2, 13, DIM, seed=1)
    padding = torch.rand(2, 13, generator=torch.Generator().manual_seed(2)) < 0.5
    padding[0, ::4] = True
    context = reading(memory, padding)
    torch.testing.assert_close(attention(x, context), dense(attention, x, memory, seen(stride, 13, padding)))


@lengths
def test_stride_1_is_full_attention(length: int) -> None:
    ours, memory, x = make(1), vectors(2, length, DIM, seed=1), vectors(2, 3, DIM)
    context = reading(memory, ends_after(length, max(1, length - 2)))
    full = CrossAttention(ours.projections, FullAttention())
    torch.testing.assert_close(ours(x, context), full(x, context))


@lengths
@strides
@for_each("padded", [False, True])
def test_gradients_are_those_of_the_dense_mask(stride: int, length: int, padded: bool) -> None:
    attention = make(stride).double()
    x, memory = vectors(2, 3, DIM).double().requires_grad_(), vectors(2, length, DIM, seed=1).double().requires_grad_()
    padding = ends_after(length, max(0, length - 5)) if padded else None
    inputs = (x, memory, *attention.parameters())
    out = attention(x, reading(memory, padding))
    # No NaN of an empty softmax in the reference.
    allowed = seen(stride, length, padding)
    busy = allowed.any(dim=-1, keepdim=True)
    q, (k, v) = attention.projections.queries(x), attention.projections.keys_values(memory)
    logits = (q @ k.mT / q.size(-1) ** 0.5).masked_fill(~allowed & busy, -torch.inf)
    expected = attention.projections.output((logits.softmax(dim=-1) @ v).masked_fill(~busy, 0.0))
    found = torch.autograd.grad(out.square().sum(), inputs, materialize_grads=True)
    wanted = torch.autograd.grad(expected.square().sum(), inputs, materialize_grads=True)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_gradients_are_differences_of_the_output() -> None:
    attention = make(2).double()
    x, memory = vectors(1, 2, DIM).double(), vectors(1, 5, DIM, seed=1).double()
    padding = ends_after(4, width=5)

    def run(x: Tensor, memory: Tensor) -> Tensor:
        return attention(x, reading(memory, padding))

    assert torch.autograd.gradcheck(run, (x.requires_grad_(), memory.requires_grad_()))


@strides
@torch.no_grad()
def test_only_what_a_head_reads_is_projected_and_kept(stride: int) -> None:
    attention, memory, state = make(stride), vectors(2, 13, DIM), make(stride).new_state()
    attention.step(vectors(2, 3, DIM), reading(memory), state)
    keys, values = state.keys_values
    assert keys.shape == values.shape == (2, HEADS, -(-13 // stride), DIM // HEADS)
    whole = attention.projections.keys_values(memory)
    for kept, every in zip((keys, values), whole, strict=True):
        for head in range(HEADS):
            own = every[:, head, head % stride :: stride]
            torch.testing.assert_close(kept[:, head, : own.size(1)], own)


@for_each("padding", [None, ends_after(13, 2, 0)])
@strides
@torch.no_grad()
def test_the_mask_is_made_once_and_follows_the_documents(stride: int, padding: Tensor | None) -> None:
    attention, memory, state = make(stride), vectors(3, 13, DIM), make(stride).new_state()
    context, x = reading(memory, padding), vectors(3, 4, DIM, seed=1)
    torch.testing.assert_close(attention.step(x, context, state), attention(x, context))
    made = state.mask
    torch.testing.assert_close(attention.step(x, context, state), attention(x, context))
    assert state.mask is made
    kept = torch.tensor([2, 1])
    state.reorder(kept, kept)
    left = reading(memory[kept], None if padding is None else padding[kept])
    torch.testing.assert_close(attention.step(x[kept], left, state), attention(x[kept], left))


@torch.no_grad()
def test_no_mask_is_made_where_nothing_is_hidden() -> None:
    attention, state = make(4), make(4).new_state()
    attention.step(vectors(2, 1, DIM), reading(vectors(2, 8, DIM)), state)
    assert state.mask is None


@for_each(("heads", "stride"), list(itertools.product([1, 6, 8], [4, 5, 16])))
def test_a_stride_that_does_not_divide_the_heads_is_refused(heads: int, stride: int) -> None:
    if heads % stride:
        with pytest.raises(
            ValueError, match=rf"^`num_heads` \({heads}\) must be divisible by the `stride` of hepos \({stride}\)\.$"
        ):
            HeposAttention(heads, stride)
    else:
        HeposAttention(heads, stride)


def test_it_looks_at_no_order() -> None:
    q = vectors(1, 4, 3, 4)
    with pytest.raises(ValueError, match="HeposAttention cannot be causal"):
        HeposAttention(4)(q, q, q, LayerContext(is_causal=True))


@strides
@lengths
@torch.no_grad()
def test_projections_of_every_kind_can_be_strided(stride: int, length: int) -> None:
    projections, x = make(stride).projections, vectors(2, length, DIM)
    real = ends_after(length, width=-(-length // stride) * stride)[0].view(-1, stride)
    fast = projections.strided_keys_values(x, stride)
    plain = Projections.strided_keys_values(projections, x, stride)
    for ours, theirs in zip(fast, plain, strict=True):
        assert ours.shape == theirs.shape
        for head in range(HEADS):
            kept = ~real[:, head % stride]
            torch.testing.assert_close(ours[:, head, kept], theirs[:, head, kept])
