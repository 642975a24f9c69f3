"""Sparse kinds beside dense attention, which holds the whole matrix of weights."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_parts import ends_after
from torch import Tensor

from pyramidions.nn.attention import (
    AdaptiveSpanAttention,
    BigBirdAttention,
    BlockGlobalAttention,
    BlockwiseAttention,
    BucketedAttention,
    CoreAttention,
    Feature,
    GlobalRows,
    RelativeAttention,
    RelativeWindowAttention,
    SegmentsAttention,
    SlidingWindowAttention,
    StridedAttention,
)
from pyramidions.nn.functional import attention, tiles
from pyramidions.nn.marks import Marks
from pyramidions.nn.sublayer import LayerContext
from pyramidions.nn.units import Units

HEADS, WIDTH = 3, 12


def unseen(allowed: Tensor) -> Tensor:
    """Return 0 where a query sees a key, -inf elsewhere."""
    return torch.zeros(allowed.shape, dtype=torch.float64).masked_fill(~allowed, -torch.inf)


def distances(length: int) -> Tensor:
    return torch.arange(length)[:, None] - torch.arange(length)


class Document(NamedTuple):
    """One document: its projected heads, and the number of the unit of each position."""

    q: Tensor  # (H, L, E)
    k: Tensor
    unit: Tensor  # (L,), -1 at padding
    is_causal: bool = False

    @property
    def length(self) -> int:
        return self.q.size(1)


def adaptive_span(kind: AdaptiveSpanAttention, of: Document) -> Tensor:
    """Return the logarithm of what the paper multiplies a weight by, before weights are normalised again."""
    away, spans = distances(of.length).abs(), kind.side * kind.span.detach().sigmoid()
    return (((spans[:, None, None] - away) / kind.ramp + 1).clamp(0, 1) * (away <= kind.side)).log()


def bigbird(kind: BigBirdAttention, of: Document) -> Tensor:
    lists, size, length = kind.lists, kind.block_size, of.length
    count = -(-length // size)
    allowed = torch.zeros(HEADS, count, count, dtype=torch.bool)
    for head, of_head in enumerate(lists.of_others(torch.tensor([count]), HEADS, torch.arange(count))[0]):
        for row, blocks in enumerate(of_head.tolist()):
            end = row < lists.ends or row >= count - lists.ends
            allowed[head, row, [block for block in blocks if block >= 0]] = True
            allowed[head, row] |= end or count <= lists.full
    return unseen(allowed.repeat_interleave(size, dim=1).repeat_interleave(size, dim=2)[:, :length, :length])


def blockwise(kind: BlockwiseAttention, of: Document) -> Tensor:
    block = torch.arange(of.length) // kind.block_size
    return unseen(block[:, None] == block)[None]


def block_global(kind: BlockGlobalAttention, of: Document) -> Tensor:
    block = (torch.arange(of.length) + kind.earlier) // kind.block_size
    return unseen(block[:, None] == block)[None]


def bucketed(kind: BucketedAttention, of: Document) -> Tensor:
    biases: Tensor = kind.biases(-distances(of.length).flatten(), of.is_causal)
    return biases.view(-1, of.length, of.length)


def relative(kind: RelativeAttention, of: Document) -> Tensor:
    """Return ((q + w) R(i - j) + u k) / sqrt(E), where (q + u) k + (q + w) R(i - j) is the score (Dai et al. 2019)."""
    frequencies = torch.tensor([10000 ** (-2 * i / WIDTH) for i in range(WIDTH // 2)])
    angles = distances(of.length)[..., None] * frequencies
    # Tables are in single precision.
    r = kind.position_proj(torch.cat([angles.sin(), angles.cos()], dim=-1).double()).unflatten(-1, (HEADS, -1))
    content, position = (bias[:, None] for bias in (kind.distances.content_bias, kind.distances.position_bias))
    by_distance = torch.einsum("hqe,qkhe->hqk", of.q + position, r)
    return (by_distance + (content * of.k).sum(-1)[:, None]) / of.q.size(-1) ** 0.5


def relative_window(kind: RelativeWindowAttention, of: Document) -> Tensor:
    return relative(kind, of) + sliding_window(kind, of)


def segments(kind: SegmentsAttention, of: Document) -> Tensor:
    segment, size = torch.zeros_like(of.unit), 0
    for place in range(1, of.length):
        size = size + 1 if of.unit[place] == of.unit[place - 1] else 0
        segment[place] = segment[place - 1] + (size % kind.segment_length == 0)
    return unseen(segment[:, None] == segment)[None]


def sliding_window(kind: SlidingWindowAttention | RelativeWindowAttention, of: Document) -> Tensor:
    away = distances(of.length)
    dilations = [kind.dilation if head >= HEADS - kind.dilated_heads else 1 for head in range(HEADS)]
    return unseen(torch.stack([(away.abs() <= kind.side * each) & (away % each == 0) for each in dilations]))


def strided(kind: StridedAttention, of: Document) -> Tensor:
    near, far = distances(of.length).abs() <= kind.side, distances(of.length) % kind.stride == 0
    return unseen(torch.stack([near, near, far] if kind.split_heads else [near | far] * HEADS))


class Reference(NamedTuple):
    """What dense attention adds to the scores of a kind.

    Attributes:
        bias: of the kind and a `Document`: (H or 1, L, L).
        drawn: the kind, with options of any size.
        alone: the bias is that of a document without its padding, which is at its end.
        learns: the bias has the gradients of the kind's weights.
    """

    bias: Callable[..., Tensor]
    drawn: Callable[[Callable[[int, int], int]], CoreAttention]
    alone: bool = False
    learns: bool = False


def drawn_window(draw: Callable[[int, int], int]) -> dict[str, int]:
    dilation = draw(1, 4)
    return {"window": 2 * draw(1, 12), "dilation": dilation, "dilated_heads": draw(1, HEADS) if dilation > 1 else 0}


REFERENCES: dict[str, Reference] = {
    "adaptive_span": Reference(
        adaptive_span, lambda draw: AdaptiveSpanAttention(HEADS, 2 * draw(1, 20), ramp=draw(1, 20))
    ),
    "bigbird": Reference(
        bigbird,
        lambda draw: BigBirdAttention(draw(1, 8), 2 * draw(0, 2) + 1, draw(0, 2), draw(0, 3), draw(-2, 2)),
        alone=True,
    ),
    "block_global": Reference(block_global, lambda draw: BlockGlobalAttention(2 * draw(1, 10), layer=draw(0, 3))),
    "blockwise": Reference(blockwise, lambda draw: BlockwiseAttention(draw(1, 20))),
    "bucketed": Reference(bucketed, lambda draw: BucketedAttention(HEADS, 8, furthest=draw(5, 200)), learns=True),
    "relative": Reference(relative, lambda draw: RelativeAttention(WIDTH, HEADS), learns=True),
    "relative_window": Reference(
        relative_window, lambda draw: RelativeWindowAttention(WIDTH, HEADS, **drawn_window(draw)), learns=True
    ),
    "segments": Reference(segments, lambda draw: SegmentsAttention(draw(1, 70))),
    "sliding_window": Reference(sliding_window, lambda draw: SlidingWindowAttention(**drawn_window(draw))),
    "strided": Reference(strided, lambda draw: StridedAttention(draw(1, 20), 2 * draw(1, 12), bool(draw(0, 1)))),
}


def some_padding(data: st.DataObject, at_the_end: bool) -> Tensor:
    """Draw which positions of a batch are padding, never all of a document: (B, L)."""
    length, batch = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 3))
    if at_the_end:
        return ends_after(*(data.draw(st.integers(1, length)) for _ in range(batch)), width=length)
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 9)))
    padding = torch.rand(batch, length, generator=generator) < data.draw(st.sampled_from([0.0, 0.2, 0.7]))
    padding[:, data.draw(st.integers(0, length - 1))] = False
    return padding


def dense_weights(q: Tensor, k: Tensor, bias: Tensor, padding: Tensor) -> Tensor:
    """Return the weights of one document: (H, L, E) x 2, (H or 1, L, L), (L,) -> (H, L, L)."""
    scores = (q @ k.mT / q.size(-1) ** 0.5 + bias).masked_fill(padding, -torch.inf)
    # A row that sees nothing is padding, and never read.
    return scores.masked_fill(scores.amax(dim=-1, keepdim=True).eq(-torch.inf), 0.0).softmax(dim=-1)


def reference_weights(
    reference: Reference, kind: Any, q: Tensor, k: Tensor, context: LayerContext, padding: Tensor
) -> Tensor:
    """Return the weights of a batch, document by document: (B, H, L, L)."""
    rows, length = [], q.size(2)
    unit = padding.long().neg() if context.units is None else context.units.unit
    for document in range(len(q)):
        count = int((~padding[document]).sum()) if reference.alone else length
        whole = torch.zeros(1, length, length, dtype=torch.float64).repeat(HEADS, 1, 1)
        of = Document(q[document, :, :count], k[document, :, :count], unit[document], context.is_causal)
        whole[:, :count, :count] = reference.bias(kind, of)
        if context.is_causal:
            whole = whole.masked_fill(distances(length) < 0, -torch.inf)
        if context.marks is not None:
            # Marked positions see all, and are seen by all.
            marked = context.marks.marked[document]
            whole = whole.masked_fill(marked | marked[:, None], 0.0)
        rows.append(dense_weights(q[document], k[document], whole, padding[document]))
    return torch.stack(rows)


def assert_is_dense(name: str, kind: Any, padding: Tensor, **given: Any) -> None:
    """Compare a kind with dense attention: what is mixed, all gradients, and what positions receive."""
    generator, reference = torch.Generator().manual_seed(padding.size(1)), REFERENCES[name]
    shape, context = (3, len(padding), HEADS, padding.size(1), WIDTH // HEADS), LayerContext(padding, **given)
    heads = q, k, v = torch.randn(*shape, generator=generator, dtype=torch.float64).unbind()
    marks, learning = (
        context.marks,
        [x.requires_grad_() for x in heads] + [*(kind.double().parameters() if reference.learns else ())],
    )
    mixed = kind.double()(q, k, v, context)
    if marks is not None:
        mixed = marks.put(mixed, GlobalRows()(v, heads, marks, LayerContext(padding)))
    weights = reference_weights(reference, kind, q, k, context, padding)
    real = ~padding[:, None, :, None].expand_as(mixed)
    # Sinusoids of distances are in single precision.
    torch.testing.assert_close(mixed[real], (weights @ v)[real], rtol=1e-5, atol=1e-5)
    grad = torch.randn(mixed.shape, generator=generator, dtype=torch.float64).masked_fill(~real, 0.0)
    found, expected = (torch.autograd.grad(out, learning, grad, retain_graph=True) for out in (mixed, weights @ v))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    if Feature.RECEIVED in kind.supports and not context.is_causal:
        received = kind.received(q.detach(), k.detach(), context)
        if marks is not None:
            received += GlobalRows().received(v, q.detach(), k.detach(), marks, LayerContext(padding))
        columns = weights.masked_fill(~real[..., :1], 0.0).sum(dim=(1, 2)).masked_fill(padding, 0.0)
        torch.testing.assert_close(received.double(), columns.detach(), rtol=0, atol=1e-4)


@settings(deadline=None, max_examples=30)
@given(st.data())
@pytest.mark.parametrize("on_cpu", [True, False])
@pytest.mark.parametrize("name", REFERENCES)
def test_it_is_dense_attention_with_its_bias(name: str, on_cpu: bool, data: st.DataObject) -> None:
    reference = REFERENCES[name]
    kind = reference.drawn(lambda least, most: data.draw(st.integers(least, most)))
    is_causal = Feature.CAUSAL in kind.supports and data.draw(st.booleans())
    padding = some_padding(data, at_the_end=reference.alone or is_causal)
    torch.manual_seed(data.draw(st.integers(0, 9)))
    marks = None
    if Feature.MARKS in kind.supports and not is_causal:
        marked = (torch.rand(padding.shape) < data.draw(st.sampled_from([0.0, 0.1, 1.0]))) & ~padding
        marks = Marks(marked, int(marked.sum(dim=1).max()))
    unit = (torch.rand(padding.shape) < data.draw(st.sampled_from([0.02, 0.2, 1.0]))).cumsum(dim=1)
    for weight in kind.parameters():
        torch.nn.init.normal_(weight, std=2.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "computes_in_tiles", lambda x: on_cpu)
        # A few pieces even of short documents.
        patch.setattr(tiles, "_WEIGHTS", 500)
        patch.setattr(tiles, "_ROWS", 16)
        patch.setattr(tiles, "_WEIGHTS_OF_GPU", 2000)
        given = {"is_causal": is_causal, "marks": marks, "units": Units(unit.masked_fill(padding, -1))}
        assert_is_dense(name, kind.train(data.draw(st.booleans())), padding, **given)


@pytest.mark.parametrize(
    ("name", "kind", "lengths"),
    [
        ("adaptive_span", AdaptiveSpanAttention(HEADS), (601, 300, 1)),
        # Eleven blocks, all of which are seen, and a position more.
        ("bigbird", BigBirdAttention(), (901, 705, 704, 63, 1)),
        ("strided", StridedAttention(), (200, 33, 1)),
        ("strided", StridedAttention(split_heads=True), (97, 65, 31)),
        ("sliding_window", SlidingWindowAttention(), (601, 257, 1)),
    ],
)
def test_default_options_are_dense_at_odd_lengths_too(name: str, kind: CoreAttention, lengths: tuple[int, ...]) -> None:
    assert_is_dense(name, kind, ends_after(*lengths))


def test_padding_within_a_document_is_never_seen_through_lists_of_blocks() -> None:
    padding = torch.zeros(1, 40, dtype=torch.bool)
    padding[:, [0, 1, 2, 7, 20]] = True
    q, k, v = torch.randn(3, 1, HEADS, 40, 4, dtype=torch.float64)
    kind = BigBirdAttention(3, 1, 1, 1)
    expected = dense_weights(q[0], k[0], bigbird(kind, Document(q[0], k[0], padding[0])), padding[0]) @ v[0]
    found = kind(q, k, v, LayerContext(padding))[0]
    torch.testing.assert_close(found[:, ~padding[0]], expected[:, ~padding[0]])
