"""What heads read of a memory: strides beside a dense mask for each head, and sections beside a loop."""

import math

import pytest
import torch
from noise import add_noise
from small_parts import ends_after, vectors
from torch import Tensor
from whole_models import PAD, batch, tiny

from pyramidions.nn.attention import CrossAttention, DiscourseAttention, FullAttention, HeposAttention
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


# Two documents of eight words: one of three sections, one of a single section and padding.
UNIT = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 0, 0, -1, -1, -1]])


def discourse(dropout: float = 0.0, sections: int = 64) -> CrossAttention:
    torch.manual_seed(0)
    made = CrossAttention(DenseProjections(DIM, HEADS), DiscourseAttention(sections, dropout))
    add_noise(made, 0.3)
    return made.eval()


def reading_units(memory: Tensor, unit: Tensor = UNIT) -> LayerContext:
    return LayerContext(None, (Memory(memory, unit < 0, unit=unit),))


def by_loops(attention: CrossAttention, x: Tensor, memory: Tensor, unit: Tensor) -> Tensor:
    """Return the weights (B, H, T, K), one query and one head of a document after the other."""
    q, (k, _) = attention.projections.queries(x), attention.projections.keys_values(memory)
    found, root = torch.zeros(len(x), HEADS, x.size(1), memory.size(1), dtype=x.dtype), math.sqrt(DIM / HEADS)
    for document, sections in enumerate(unit.tolist()):
        real = [place for place, section in enumerate(sections) if section >= 0]
        for head in range(HEADS):
            keys = k[document, head]
            means = [
                torch.stack([keys[place] for place in real if sections[place] == section]).mean(dim=0)
                for section in range(max(sections) + 1)
            ]
            for time, query in enumerate(q[document, head]):
                attended = torch.stack([query @ mean / root for mean in means]).softmax(dim=0)
                scores = [attended[sections[place]] * (query @ keys[place]) / root for place in real]
                found[document, head, time, real] = torch.stack(scores).softmax(dim=0)
    return found


def test_the_score_of_a_word_is_multiplied_by_the_attention_to_its_section_and_so_are_gradients() -> None:
    attention = discourse().double()
    x, memory = (vectors(2, n, DIM, seed=n).double().requires_grad_() for n in (5, 8))
    weights = by_loops(attention, x, memory, UNIT)
    torch.testing.assert_close(attention.weights(x, reading_units(memory)), weights)
    expected = attention.projections.output(weights @ attention.projections.keys_values(memory)[1])
    found, learning = attention(x, reading_units(memory)), (x, memory, *attention.parameters())
    torch.testing.assert_close(found, expected)
    grads = (torch.autograd.grad(out.square().sum(), learning) for out in (found, expected))
    torch.testing.assert_close(*grads)


@torch.no_grad()
def test_numbers_that_a_pooling_left_out_change_nothing_and_the_last_section_takes_in_further_ones() -> None:
    attention, x, memory = discourse(), vectors(2, 5, DIM), vectors(2, 8, DIM, seed=1)
    others = torch.tensor([[7, 7, 7, 1, 1, 4, 4, 4], [3, 3, 3, 3, 3, -1, -1, -1]])
    torch.testing.assert_close(attention(x, reading_units(memory, others)), attention(x, reading_units(memory)))
    # What follows the last section that is told apart is part of it.
    torch.testing.assert_close(
        discourse(sections=2)(x, reading_units(memory)), discourse()(x, reading_units(memory, UNIT.clamp(max=1)))
    )


@torch.no_grad()
def test_steps_of_two_hypotheses_read_what_a_whole_pass_does_and_follow_their_documents() -> None:
    attention, memory, state = discourse(), vectors(2, 8, DIM, seed=1), discourse().new_state()
    # (B, WT, D): the hypotheses of a document follow each other.
    x = vectors(2, 6, DIM)
    torch.testing.assert_close(attention.step(x, reading_units(memory), state), attention(x, reading_units(memory)))
    kept = torch.tensor([1])
    state.reorder(torch.tensor([2, 3]), kept)
    left = reading_units(memory[kept], UNIT[kept])
    torch.testing.assert_close(attention.step(x[kept], left, state), attention(x[kept], left))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_half_precision_comes_close_with_sections_of_thousands_of_words(dtype: torch.dtype) -> None:
    attention, x, memory = discourse(), vectors(1, 3, DIM), 4 + vectors(1, 9000, DIM, seed=1)
    context = reading_units(memory, torch.arange(9000)[None] // 6000)
    with torch.autocast("cpu", dtype):
        found = attention(x, context)
    torch.testing.assert_close(found.float(), attention(x, context), rtol=0.05, atol=0.05)


@torch.no_grad()
def test_a_model_weighs_the_units_that_markers_begin_also_behind_a_pooling() -> None:
    model, tokens = tiny("full", "soft_topk", cross_attention="discourse"), batch(23, 9)
    memory = model.encoder(tokens, tokens.eq(PAD)).memories[0]
    assert memory.unit is not None
    assert memory.unit.shape == memory.x.shape[:2]
    assert memory.unit.max() > 0
    x = vectors(2, 3, 8)
    attention = next(part for part in model.modules() if isinstance(part, CrossAttention))
    context = LayerContext(None, (memory,))
    alone = LayerContext(None, (memory._replace(unit=None),))
    assert not torch.allclose(attention(x, context), attention(x, alone))


def test_a_memory_from_before_a_pooling_that_loses_units_may_be_read_by_them() -> None:
    tiny("full", "max", cross_attention="discourse(); full", memories="1,last")


@torch.no_grad()
def test_dropout_acts_on_the_weights_of_words() -> None:
    attention, x, memory = discourse(dropout=0.5).train(), vectors(1, 1, DIM), vectors(1, 8, DIM, seed=1)
    drawn = attention(x.expand(4000, -1, -1), reading_units(memory.expand(4000, -1, -1), UNIT[:1].expand(4000, -1)))
    assert drawn.std(dim=0).min() > 0.01
    torch.testing.assert_close(
        drawn.mean(0), attention.eval()(x, reading_units(memory, UNIT[:1]))[0], rtol=0, atol=0.05
    )
