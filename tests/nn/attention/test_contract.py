"""What every attention kind promises; a new kind is held to it by being registered."""

from collections.abc import Callable

import pytest
import torch
from live_memory import saved_bytes
from noise import add_noise
from small_parts import ends_after
from torch import Tensor

from pyramidions.nn.attention import ATTENTION, CoreAttention, Feature, supporting
from pyramidions.nn.attention.multihead import with_key_bias
from pyramidions.nn.attention.state import KeysValues
from pyramidions.nn.functional import attention as functional
from pyramidions.nn.marks import Marks
from pyramidions.nn.sublayer import LayerContext

# What a model tells its attention; `heads` are of this shape.
GIVEN = {"embed_dim": 16, "num_heads": 2, "head_dim": 8, "max_length": 64}
# Of the documents of a batch: blocks and a rest, two blocks, a block and one more, a block, less, and one token.
LENGTHS = (13, 8, 5, 4, 3, 1)
#: kinds that draw rotations or noise in training where they have more than one bucket, and further options of them
IN_ONE_BUCKET: dict[str, dict[str, int]] = {"lsh": {"local_heads": 1, "local_window": 24}, "sinkhorn": {}}
MODES = [
    (kind, is_causal)
    for kind in ATTENTION.names
    for is_causal in (False, True)
    if not is_causal or Feature.CAUSAL in ATTENTION[kind].supports
]

kinds = pytest.mark.parametrize("kind", ATTENTION.names)
in_tiles_or_not = pytest.mark.parametrize("in_tiles", [True, False])


def make(kind: str, size: str, **options: float) -> CoreAttention:
    """Return a kind that sees all of a short sequence, "wide", or cuts it, "narrow"."""
    torch.manual_seed(0)
    made = ATTENTION.build(kind, getattr(ATTENTION[kind], size), **{"dropout": 0.0, **GIVEN, **options}).eval()
    add_noise(made, 0.1)
    return made


def heads(length: int, batch: int = len(LENGTHS), seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
    q, k, v = (torch.randn(batch, 2, length, 8, generator=generator) for _ in range(3))
    return q, k, v


def naive_weights(
    q: Tensor, k: Tensor, mask: Tensor | None = None, is_causal: bool = False, bias: Tensor | None = None
) -> Tensor:
    scores = q @ k.mT / q.size(-1) ** 0.5
    if bias is not None:
        scores = scores + bias[:, None, None]
    if mask is not None:
        scores = scores.masked_fill(mask[:, None, None], -torch.inf)
    if is_causal:
        scores = scores.masked_fill(torch.ones(q.size(2), k.size(2)).triu(1).bool(), -torch.inf)
    return scores.softmax(-1)


def marks_of(kind: str, batch: int, length: int) -> Marks | None:
    """Mark the second position of each document where the kind reads marks."""
    if Feature.MARKS not in ATTENTION[kind].supports:
        return None
    return Marks((torch.arange(length) == 1).expand(batch, -1), 1)


def real_of(x: Tensor, mask: Tensor) -> Tensor:
    """Return what stands at real positions: (B, H, L, E), (B, L) -> (n, H, E)."""
    return x.transpose(1, 2)[~mask]


@pytest.mark.parametrize(("kind", "is_causal"), [mode for mode in MODES if ATTENTION[mode[0]].is_exact])
def test_it_equals_full_attention_when_it_sees_the_whole_sequence(kind: str, is_causal: bool) -> None:
    (q, k, v), mask = heads(13), ends_after(*LENGTHS)
    out = make(kind, "wide")(q, k, v, LayerContext(mask, is_causal=is_causal))
    expected = naive_weights(q, k, mask, is_causal) @ v
    torch.testing.assert_close(real_of(out, mask), real_of(expected, mask))


@pytest.mark.parametrize("kind", supporting(Feature.KEY_BIAS))
def test_a_bias_is_added_to_the_scores_of_each_key_and_learns(kind: str) -> None:
    (q, k, v), mask = heads(13), ends_after(*LENGTHS)
    bias = (heads(13, seed=1)[0][:, 0, :, 0] * 5).requires_grad_()
    out = make(kind, "wide")(*with_key_bias(q, k, v, bias), LayerContext(mask))
    assert not out[..., 8:].any()
    found, expected = real_of(out[..., :8], mask), real_of(naive_weights(q, k, mask, bias=bias) @ v, mask)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(*(torch.autograd.grad(each.square().sum(), bias)[0] for each in (found, expected)))


@kinds
def test_values_at_padding_never_change_a_real_output(kind: str) -> None:
    attention, (q, k, v), mask = make(kind, "narrow"), heads(16), ends_after(*LENGTHS, width=16)
    before = attention(q, k, v, LayerContext(mask))
    padded = mask[:, None, :, None]
    after = attention(*(x.masked_fill(padded, at) for x, at in ((q, 7.0), (k, -9.0), (v, 1e4))), LayerContext(mask))
    assert torch.equal(real_of(after, mask), real_of(before, mask))


@kinds
def test_a_fully_padded_row_stays_finite_and_so_do_gradients(kind: str) -> None:
    attention, given = make(kind, "narrow"), [x.requires_grad_() for x in heads(9, batch=2)]
    out = attention(*given, LayerContext(ends_after(9, 0)))
    assert out.isfinite().all()
    out.sum().backward()
    q, k, v = given
    read = (q, v) if attention.shares_query_key else (q, k, v)
    assert all(x.grad is not None and x.grad.isfinite().all() for x in read)


@pytest.mark.parametrize("kind", supporting(Feature.CAUSAL))
def test_causal_attention_never_sees_what_comes_later(kind: str) -> None:
    attention, (q, k, v) = make(kind, "narrow"), heads(10)
    before = attention(q, k, v, LayerContext(is_causal=True))
    k[:, :, 6:], v[:, :, 6:] = 5.0, 5.0
    assert torch.equal(attention(q, k, v, LayerContext(is_causal=True))[:, :, :6], before[:, :, :6])
    if attention.shares_query_key:
        # Keys are the queries.
        q[:, :, 6:] = 5.0
        torch.testing.assert_close(
            attention(q, k, v, LayerContext(is_causal=True))[:, :, :6], before[:, :, :6], rtol=0, atol=1e-6
        )


def computing(kind: str, in_tiles: bool, monkeypatch: pytest.MonkeyPatch, dropout: float = 0.0) -> CoreAttention:
    """Return a kind that cuts a sequence, in tiles as on a CPU or in one product as on a GPU."""
    monkeypatch.setattr(functional, "computes_in_tiles", lambda x: in_tiles)
    size = "wide" if kind in IN_ONE_BUCKET else "narrow"
    return make(kind, size, dropout=dropout, **IN_ONE_BUCKET.get(kind, {}))


@kinds
@in_tiles_or_not
def test_dropout_drops_weights_and_keeps_their_mean_and_the_backward_pass_knows_them(
    kind: str, in_tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention, (q, k, v) = computing(kind, in_tiles, monkeypatch, dropout=0.3), heads(11, batch=1)
    exact = attention.eval()(q, k, v, LayerContext(marks=marks_of(kind, 1, 11)))
    torch.manual_seed(0)
    many = (x.expand(6000, -1, -1, -1) for x in (q, k, v))
    dropped = attention.train()(*many, LayerContext(marks=marks_of(kind, 6000, 11)))
    torch.testing.assert_close(dropped.mean(dim=0, keepdim=True), exact, rtol=0, atol=0.06)
    assert not dropped[0].allclose(dropped[1])
    v.requires_grad_()
    torch.manual_seed(3)
    first, other = attention(q, k, v), attention(q, k, v)
    # Linear in values: their gradient mixes with the very weights of the forward pass.
    (grad,) = torch.autograd.grad(first, v, first.detach())
    assert (grad * v).sum().item() == pytest.approx(first.square().sum().item(), rel=1e-4)
    torch.manual_seed(3)
    assert attention(q, k, v).equal(first) and not other.equal(first)


@kinds
@pytest.mark.parametrize(("dtype", "in_tiles"), [(torch.float16, False), (torch.bfloat16, True)])
def test_half_precision_is_close_to_full_precision(
    kind: str, dtype: torch.dtype, in_tiles: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    attention, rounded = computing(kind, in_tiles, monkeypatch), [x.to(dtype) for x in heads(40, batch=2)]
    for is_causal in [is_causal for name, is_causal in MODES if name == kind]:
        context = LayerContext(ends_after(40, 0), is_causal=is_causal)
        exact = attention.float()(*(x.float() for x in rounded), context)
        low = [x.clone().requires_grad_() for x in rounded]
        out = attention.to(dtype)(*low, context)
        assert out.dtype == dtype and out.isfinite().all()
        torch.testing.assert_close(out[0].float(), exact[0], atol=3e-2, rtol=3e-2)
        out.float().sum().backward()
        read = (low[0], low[2]) if attention.shares_query_key else low
        assert all(x.grad is not None and x.grad.isfinite().all() for x in read)


@pytest.mark.parametrize(("kind", "is_causal"), MODES)
def test_what_is_kept_for_the_backward_pass_grows_as_the_length(kind: str, is_causal: bool) -> None:
    attention, sizes = make(kind, "wide", max_length=2048).train(), []
    for length in (1024, 2048):
        given = [x.requires_grad_() for x in heads(length, batch=2)]
        context = LayerContext(is_causal=is_causal, marks=None if is_causal else marks_of(kind, 2, length))
        sizes.append(saved_bytes(lambda given=given, context=context: attention(*given, context)))
    assert sizes[1] / sizes[0] < 2.3


@pytest.mark.parametrize("kind", [kind for kind in supporting(Feature.RECEIVED) if ATTENTION[kind].is_exact])
def test_what_a_position_received_is_the_sum_of_its_column_over_heads_and_real_queries(kind: str) -> None:
    (q, k, _), mask = heads(13), ends_after(*LENGTHS)
    expected = real_of(naive_weights(q, k, mask), mask).new_zeros(mask.shape)
    for row, length in enumerate(LENGTHS):
        weights = naive_weights(*(x[row : row + 1, :, :length] for x in (q, k)))
        expected[row, :length] = weights.sum((0, 1, 2))
    torch.testing.assert_close(make(kind, "wide").received(q, k, LayerContext(mask)), expected)


@pytest.mark.parametrize("kind", supporting(Feature.WEIGHTS))
def test_the_values_mixed_by_the_weights_are_what_attention_returns(kind: str) -> None:
    attention, (q, _, _), (_, k, v), mask = make(kind, "wide", dropout=0.5), heads(5), heads(13), ends_after(*LENGTHS)
    weights = attention.weights(q, k, LayerContext(mask))
    torch.testing.assert_close(weights @ v, attention(q, k, v, LayerContext(mask)))
    torch.testing.assert_close(weights.sum(-1), torch.ones(len(LENGTHS), 2, 5))
    assert weights.masked_select(mask[:, None, None]).eq(0).all()
    rounded = attention.weights(*(x.bfloat16() for x in heads(700, batch=1)[:2]))
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded.sum(-1), torch.ones(1, 2, 700))


@pytest.mark.parametrize("kind", supporting(Feature.OTHERS))
def test_a_wide_kind_reads_a_sequence_of_another_length_as_full_attention_does(kind: str) -> None:
    (q, _, _), (_, k, v) = heads(3), heads(7)
    torch.testing.assert_close(make(kind, "wide")(q, k, v), naive_weights(q, k) @ v)


@kinds
def test_what_a_kind_does_not_support_is_refused_in_its_name(kind: str) -> None:
    attention, (q, k, v) = make(kind, "narrow"), heads(7)
    attempts: list[tuple[Feature, Callable[[], object]]] = [
        (Feature.OTHERS, lambda: attention(q[:, :, :3], k, v)),
        (Feature.CAUSAL, lambda: attention(q, k, v, LayerContext(is_causal=True))),
        (Feature.STEPS, attention.new_state),
        (Feature.STEPS, lambda: attention.step(q, k, v, None, KeysValues())),
        (Feature.ACROSS, attention.across),
        (Feature.RECEIVED, lambda: attention.received(q, k)),
        (Feature.WEIGHTS, lambda: attention.weights(q, k)),
    ]
    for feature, attempt in attempts:
        if feature not in attention.supports:
            with pytest.raises(ValueError, match=type(attention).__name__):
                attempt()
    if {Feature.CAUSAL, Feature.MARKS} <= attention.supports:
        with pytest.raises(ValueError, match="marks"):
            attention(q, k, v, LayerContext(is_causal=True, marks=marks_of(kind, len(q), 7)))
    if Feature.ACROSS in attention.supports:
        assert isinstance(attention.across(), CoreAttention)
