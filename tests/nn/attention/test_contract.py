"""What every attention kind promises; a new kind is held to it by being registered."""

import pytest
import torch
from live_memory import saved_bytes
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import ATTENTION, CoreAttention, CrossAttention, Feature, SelfAttention
from pyramidions.nn.attention.multihead import with_key_bias
from pyramidions.nn.attention.state import KeysValues
from pyramidions.nn.decoder.cache import Lineage
from pyramidions.nn.functional import attention as functional
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.sublayer import LayerContext, Memory, SublayerFunction

# What a model tells its attention; `heads` are of this shape.
GIVEN = {"embed_dim": 16, "num_heads": 2, "head_dim": 8, "max_length": 64}

kinds = pytest.mark.parametrize("kind", ATTENTION.names)
lengths = for_each("length", [1, 3, 4, 5, 13])
in_tiles_or_not = pytest.mark.parametrize("in_tiles", [True, False])


def make(kind: str, size: str, **options: float) -> CoreAttention:
    """Return a kind that sees all of a short sequence, "wide", or cuts it, "narrow"."""
    return ATTENTION.build(kind, getattr(ATTENTION[kind], size), **{"dropout": 0.0, **GIVEN, **options}).eval()


def heads(length: int, batch: int = 2, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
    q, k, v = (torch.randn(batch, 2, length, 8, generator=generator) for _ in range(3))
    return q, k, v


def naive(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, bias: Tensor | None = None) -> Tensor:
    scores = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
    if bias is not None:
        scores = scores + bias[:, None, None]
    if mask is not None:
        scores = scores.masked_fill(mask[:, None, None], -torch.inf)
    if is_causal:
        scores = scores.masked_fill(torch.ones(q.size(2), k.size(2)).triu(1).bool(), -torch.inf)
    return scores.softmax(-1) @ v


exact = pytest.mark.parametrize("kind", [kind for kind in ATTENTION.names if ATTENTION[kind].is_exact])


@exact
@lengths
@pytest.mark.parametrize("is_causal", [False, True])
def test_it_equals_full_attention_when_it_sees_the_whole_sequence(kind: str, length: int, is_causal: bool) -> None:
    q, k, v = heads(length)
    mask = torch.arange(length) >= torch.tensor([[length], [max(1, length - 2)]])
    if ATTENTION[kind].shares_query_key:
        k = q
    if is_causal and Feature.CAUSAL not in ATTENTION[kind].supports:
        return
    out = make(kind, "wide")(q, k, v, LayerContext(mask, is_causal=is_causal))
    torch.testing.assert_close(out, naive(q, k, v, mask, is_causal))


@kinds
def test_what_was_kept_in_inference_mode_can_be_trained_with(kind: str) -> None:
    made, given = make(kind, "wide"), heads(13)
    q, k, v = (given[0], given[0], given[2]) if ATTENTION[kind].shares_query_key else given
    with torch.inference_mode():
        made(q, k, v)
    made(q.requires_grad_(), k.requires_grad_(), v.requires_grad_()).square().sum().backward()
    assert v.grad is not None


@pytest.mark.parametrize("kind", [kind for kind in ATTENTION.names if Feature.KEY_BIAS in ATTENTION[kind].supports])
@lengths
def test_a_bias_is_added_to_the_scores_of_each_key_and_learns(kind: str, length: int) -> None:
    (q, k, v), mask = heads(length), torch.arange(length) >= torch.tensor([[length], [max(1, length - 2)]])
    bias = (heads(length, seed=1)[0][:, 0, :, 0] * 5).requires_grad_()
    out = make(kind, "wide")(*with_key_bias(q, k, v, bias), LayerContext(mask))
    expected = naive(q, k, v, mask, False, bias)
    torch.testing.assert_close(out[..., :8], expected)
    assert not out[..., 8:].any()
    grads = [torch.autograd.grad(each.square().sum(), bias) for each in (out, expected)]
    torch.testing.assert_close(*grads)


@kinds
@lengths
def test_values_at_padding_never_change_a_real_output(kind: str, length: int) -> None:
    attention, (q, k, v) = make(kind, "narrow"), heads(length + 3)
    mask = torch.arange(length + 3).expand(2, -1) >= length
    before = attention(q, k, v, LayerContext(mask))
    q[:, :, length:], k[:, :, length:], v[:, :, length:] = 7.0, -9.0, 1e4
    assert torch.equal(attention(q, k, v, LayerContext(mask))[:, :, :length], before[:, :, :length])


@kinds
@lengths
def test_a_document_does_not_depend_on_its_batch_or_padding(kind: str, length: int) -> None:
    attention, (q, k, v) = make(kind, "narrow"), heads(length + 6)
    mask = torch.arange(length + 6) >= torch.tensor([[length + 6], [length]])
    together = attention(q, k, v, LayerContext(mask))[1:, :, :length]
    alone = attention(q[1:, :, :length], k[1:, :, :length], v[1:, :, :length])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


@kinds
def test_a_fully_padded_row_stays_finite_and_so_do_gradients(kind: str) -> None:
    attention, (q, k, v) = make(kind, "narrow"), heads(9)
    for x in (q, k, v):
        x.requires_grad_()
    mask = torch.tensor([[False] * 9, [True] * 9])
    out = attention(q, k, v, LayerContext(mask))
    assert out.isfinite().all()
    out.sum().backward()
    read = (q, v) if attention.shares_query_key else (q, k, v)
    assert all(x.grad is not None and x.grad.isfinite().all() for x in read)


@kinds
def test_causal_attention_never_sees_what_comes_later(kind: str) -> None:
    attention, (q, k, v) = make(kind, "narrow"), heads(10)
    if Feature.CAUSAL not in attention.supports:
        with pytest.raises(ValueError, match="cannot be causal"):
            attention(q, k, v, LayerContext(is_causal=True))
        return
    before = attention(q, k, v, LayerContext(is_causal=True))
    k[:, :, 6:], v[:, :, 6:] = 5.0, 5.0
    assert torch.equal(attention(q, k, v, LayerContext(is_causal=True))[:, :, :6], before[:, :, :6])
    if attention.shares_query_key:
        # Keys are the queries.
        q[:, :, 6:] = 5.0
        torch.testing.assert_close(
            attention(q, k, v, LayerContext(is_causal=True))[:, :, :6], before[:, :, :6], rtol=0, atol=1e-6
        )


@kinds
@for_each("steps", [(1,) * 10, (10,), (4, 1, 5)])
def test_steps_equal_a_causal_pass_and_kinds_without_steps_say_so(kind: str, steps: tuple[int, ...]) -> None:
    attention, (q, k, v) = make(kind, "narrow"), heads(10)
    if Feature.STEPS not in attention.supports:
        with pytest.raises(ValueError, match=f"{type(attention).__name__} cannot attend from new positions to kept"):
            attention.new_state()
        with pytest.raises(ValueError, match=f"{type(attention).__name__} cannot attend from new positions to kept"):
            attention.step(q, k, v, None, KeysValues())
        return
    lineage, state, found, start = Lineage(), attention.new_state(), [], 0
    for new in steps:
        blocked = lineage.extend(2, 1, new, q.device)
        part = slice(start, start := start + new)
        bias = None if blocked is None else as_bias(blocked, q)
        found.append(attention.step(q[:, :, part], k[:, :, part], v[:, :, part], bias, state))
    torch.testing.assert_close(torch.cat(found, dim=2), attention(q, k, v, LayerContext(is_causal=True)))


@kinds
def test_gradients_reach_every_input_and_parameter(kind: str) -> None:
    attention = make(kind, "narrow")
    shared = attention.shares_query_key
    projections = PROJECTIONS.build("dense", {}, embed_dim=16, num_heads=2, shares_query_key=shared)
    x = torch.randn(2, 9, 16, requires_grad=True)
    if Feature.ITSELF not in attention.supports:
        layer: SublayerFunction = CrossAttention(projections, attention)
        context = LayerContext(memories=(Memory(x),))
    else:
        layer, context = SelfAttention(projections, attention), LayerContext()
    layer(x, context).square().sum().backward()
    assert x.grad is not None and (x.grad.abs().sum(dim=-1) > 0).all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


@kinds
def test_a_kind_that_only_reads_a_memory_is_refused_as_self_attention(kind: str) -> None:
    projections = PROJECTIONS.build("dense", {}, embed_dim=16, num_heads=2)
    if Feature.ITSELF not in ATTENTION[kind].supports:
        assert Feature.OTHERS in ATTENTION[kind].supports
        with pytest.raises(ValueError, match="^`self_attention` must be of a kind by which a sequence reads itself"):
            SelfAttention(projections, make(kind, "narrow"))
    else:
        SelfAttention(projections, make(kind, "narrow"))


@kinds
def test_the_same_seed_gives_the_same_output(kind: str) -> None:
    attention = make(kind, "narrow", dropout=0.5).train()
    outputs = []
    for _ in range(2):
        torch.manual_seed(3)
        outputs.append(attention(*heads(9)))
    assert torch.equal(*outputs)


def computing(kind: str, in_tiles: bool, monkeypatch: pytest.MonkeyPatch, dropout: float = 0.0) -> CoreAttention:
    """Return a kind that cuts a sequence, in tiles as on a CPU or in one product as on a GPU."""
    monkeypatch.setattr(functional, "computes_in_tiles", lambda x: in_tiles)
    # Where these have more than one bucket, they draw rotations or noise in training.
    return make(kind, "wide" if kind in ("lsh", "sinkhorn") else "narrow", dropout=dropout)


@kinds
@in_tiles_or_not
def test_dropout_drops_weights_and_keeps_their_mean_and_the_backward_pass_knows_them(
    kind: str, in_tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention, (q, k, v) = computing(kind, in_tiles, monkeypatch, dropout=0.3), heads(11, batch=1)
    exact = attention.eval()(q, k, v)
    torch.manual_seed(0)
    dropped = attention.train()(*(x.expand(6000, -1, -1, -1) for x in (q, k, v)))
    torch.testing.assert_close(dropped.mean(dim=0, keepdim=True), exact, rtol=0, atol=0.06)
    assert not dropped[0].allclose(dropped[1])
    # Linear in values: their gradient mixes with the very weights of the forward pass.
    v.requires_grad_()
    first = attention(q, k, v)
    attention(q, k, v)
    (grad,) = torch.autograd.grad(first, v, first.detach())
    assert (grad * v).sum().item() == pytest.approx(first.square().sum().item(), rel=1e-4)


@kinds
@in_tiles_or_not
@for_each("dtype", [torch.float16, torch.bfloat16])
@for_each("is_causal", [False, True])
def test_half_precision_is_close_to_full_precision(
    kind: str, in_tiles: bool, dtype: torch.dtype, is_causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention, rounded = computing(kind, in_tiles, monkeypatch), [x.to(dtype) for x in heads(40)]
    if is_causal and Feature.CAUSAL not in attention.supports:
        return
    context = LayerContext(torch.arange(40) >= torch.tensor([[40], [0]]), is_causal=is_causal)
    exact = attention(*(x.float() for x in rounded), context)
    low = [x.requires_grad_() for x in rounded]
    out = attention.to(dtype)(*low, context)
    attention.float()
    assert out.dtype == dtype and out.isfinite().all()
    torch.testing.assert_close(out[0].float(), exact[0], atol=3e-2, rtol=3e-2)
    out.float().sum().backward()
    assert all(x.grad is None or x.grad.isfinite().all() for x in low)


@kinds
@for_each("is_causal", [False, True])
def test_what_is_kept_for_the_backward_pass_grows_as_the_length(kind: str, is_causal: bool) -> None:
    attention = make(kind, "wide", max_length=2048).train()
    if is_causal and Feature.CAUSAL not in attention.supports:
        return
    sizes = []
    for length in (512, 1024, 2048):
        q, k, v = (x.requires_grad_() for x in heads(length))
        sizes.append(saved_bytes(lambda q=q, k=k, v=v: attention(q, k, v, LayerContext(is_causal=is_causal))))
    assert sizes[2] / sizes[1] < 2.3


OVERRIDDEN = {"step": Feature.STEPS, "across": Feature.ACROSS, "received": Feature.RECEIVED, "weights": Feature.WEIGHTS}


@kinds
def test_a_kind_has_the_methods_of_what_it_supports_and_no_others(kind: str) -> None:
    for name, feature in OVERRIDDEN.items():
        has = getattr(ATTENTION[kind], name) is not getattr(CoreAttention, name)
        assert has == (feature in ATTENTION[kind].supports), feature


@kinds
def test_kinds_that_cross_attend_to_another_length_and_others_say_no(kind: str) -> None:
    (q, _, _), (_, k, v) = heads(3), heads(7)
    attention = make(kind, "wide")
    if Feature.OTHERS in ATTENTION[kind].supports:
        out = attention(q, k, v)
        assert out.shape == q.shape and out.isfinite().all()
        if ATTENTION[kind].is_exact:
            torch.testing.assert_close(out, naive(q, k, v, None, False))
    else:
        with pytest.raises(ValueError, match="7 keys met 3 queries"):
            attention(q, k, v)
