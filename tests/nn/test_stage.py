"""Stages of parts by hand, beside plain references that read one document at a time."""

import pytest
import torch
from small_parts import DIM, ends_after, layer, vectors
from torch import Tensor, nn

from pyramidions.nn.attention import SelfAttention
from pyramidions.nn.functional.topk import hard_topk
from pyramidions.nn.layer import Layer
from pyramidions.nn.pooling import MeanPooler, Pooler, TopKPooler
from pyramidions.nn.scorer import AttentionScorer
from pyramidions.nn.sequence import Sequence
from pyramidions.nn.stack import STACK
from pyramidions.nn.stage import Stage
from pyramidions.nn.sublayer import LayerContext
from pyramidions.nn.upsampling import RepeatUpsampler

LENGTHS = (13, 7, 1)
# What layers compute in several streams is not what they compute one after the other.
PLAIN = [name for name in STACK.names if STACK[name].streams == 1]
stacks = pytest.mark.parametrize("stack", PLAIN)


def layers(count: int, **options: object) -> list[Layer]:
    torch.manual_seed(0)
    return [layer(**options) for _ in range(count)]


def documents(*lengths: int, known: bool = True) -> Sequence:
    position = torch.arange(max(lengths)).expand(len(lengths), -1)
    x = vectors(len(lengths), max(lengths), DIM)
    return Sequence(x, ends_after(*lengths), position, list(lengths) if known else None)


def alone(layer: Layer, x: Tensor) -> Tensor:
    """Run a layer on one document (L, D)."""
    return layer(x[None], LayerContext())[0]


def means(x: Tensor, window: int) -> Tensor:
    return torch.stack([part.mean(dim=0) for part in x.split(window)])


def repeated(x: Tensor, window: int, like: Tensor) -> Tensor:
    return torch.stack([x[place // window] for place in range(len(like))]) + like


@stacks
@torch.no_grad()
def test_an_hourglass_within_an_hourglass(stack: str) -> None:
    first, second, innermost, third, last = layers(5)
    inner = Stage([second], MeanPooler(3), (Stage([innermost]),), RepeatUpsampler(3))
    outer = Stage([first], MeanPooler(2), (inner, Stage([third])), RepeatUpsampler(2))
    assert [stage.layers for stage in outer.all_stages()] == [[first], [second], [innermost], [third]]

    given, composed = documents(*LENGTHS, known=stack == "plain"), STACK.build(stack, {})
    found, poolings, _ = outer(given, composed)
    found, none, _ = Stage([last])(found, composed)
    assert none == [] and [pooled.x.size(1) for pooled in poolings] == [7, 3]
    assert found.lengths == given.lengths
    assert found.padding_mask is given.padding_mask and found.position is given.position

    for row, length in enumerate(LENGTHS):
        long = alone(first, given.x[row, :length])
        middle = alone(second, means(long, 2))
        short = alone(innermost, means(middle, 3))
        middle = alone(third, repeated(short, 3, middle))
        expected = alone(last, repeated(middle, 2, long))
        torch.testing.assert_close(found.x[row, :length], expected, rtol=0, atol=1e-5)


def test_attention_needs_no_mask_where_all_is_known_to_be_real() -> None:
    x, nothing = vectors(2, 3, DIM), torch.empty(2, 0, dtype=torch.bool)
    assert Sequence(x, ends_after(3, 3), lengths=[3, 3]).attention_mask is None
    assert Sequence(x[:, :0], nothing, lengths=[0, 0]).attention_mask is None
    for mask, lengths in ((ends_after(3, 2), [3, 2]), (ends_after(3, 2), None), (ends_after(3, 3), None)):
        assert Sequence(x, mask, lengths=lengths).attention_mask is mask


SIZES = [None, 4, 4, 3, 64]


def of_different_blocks() -> list[Layer]:
    torch.manual_seed(0)
    return [layer(**({} if size is None else {"kind": "blockwise", "block_size": size})) for size in SIZES]


@stacks
@torch.no_grad()
def test_layers_of_different_blocks_stand_in_one_stage(stack: str) -> None:
    run, given = of_different_blocks(), documents(*LENGTHS, known=stack == "plain")
    assert [one.confined_to for one in run] == SIZES
    found, _, _ = Stage(run)(given, STACK.build(stack, {}))
    for row, length in enumerate(LENGTHS):
        x = given.x[row, :length]
        for one, size in zip(run, SIZES, strict=True):
            x = torch.cat([alone(one, block) for block in x.split(size or length)])
        torch.testing.assert_close(found.x[row, :length], x, rtol=0, atol=1e-5)


def scored() -> Pooler:
    return TopKPooler(4, AttentionScorer(), hard_topk, hard_topk)


def received(attention: nn.Module, x: Tensor) -> Tensor:
    """Return how much attention each position of one document (L, D) receives, of all heads and queries: (L)."""
    assert isinstance(attention, SelfAttention)
    q, k, _ = attention.projections(x[None])
    return (q @ k.transpose(2, 3) / q.size(-1) ** 0.5).softmax(dim=-1).sum(dim=(0, 1, 2))


@pytest.mark.parametrize(("normalize_before", "block_size"), [(False, None), (True, 4)])
@torch.no_grad()
def test_a_scorer_reads_what_the_attention_of_the_last_layer_received(
    normalize_before: bool, block_size: int | None
) -> None:
    blocks = {} if block_size is None else {"kind": "blockwise", "block_size": block_size}
    run, given = layers(3, normalize_before=normalize_before, **blocks), documents(*LENGTHS)
    read: list[Tensor] = []
    pooler = scored()
    pooler.scorer.register_forward_hook(lambda module, inputs, scores: read.append(scores))
    Stage(run, pooler)(given, STACK.build("plain", {}))
    (scores,) = read
    assert scores.masked_select(given.padding_mask).eq(0).all()
    attention = run[-1].sublayers["self_attention"]
    for row, length in enumerate(LENGTHS):
        parts = []
        for block in given.x[row, :length].split(block_size or length):
            for one in run[:-1]:
                block = alone(one, block)
            parts.append(received(attention.function, attention.entering(block)))
        torch.testing.assert_close(scores[row, :length], torch.cat(parts), rtol=0, atol=1e-5)
