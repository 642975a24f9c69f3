"""Attention that weighs sections, against a loop over words and sections."""

import math

import pytest
import torch
from noise import add_noise
from small_parts import vectors
from torch import Tensor
from whole_models import PAD, batch, tiny

from pyramidions.nn.attention import CrossAttention, DiscourseAttention
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import LayerContext, Memory

DIM, HEADS = 16, 4
# Two documents of eight words: one of three sections, one of a single section and padding.
UNIT = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 0, 0, -1, -1, -1]])


def make(dropout: float = 0.0, sections: int = 64) -> CrossAttention:
    torch.manual_seed(0)
    made = CrossAttention(DenseProjections(DIM, HEADS), DiscourseAttention(sections, dropout))
    add_noise(made, 0.3)
    return made.eval()


def reading(memory: Tensor, unit: Tensor = UNIT) -> LayerContext:
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
    attention = make().double()
    x, memory = (vectors(2, n, DIM, seed=n).double().requires_grad_() for n in (5, 8))
    weights = by_loops(attention, x, memory, UNIT)
    torch.testing.assert_close(attention.weights(x, reading(memory)), weights)
    expected = attention.projections.output(weights @ attention.projections.keys_values(memory)[1])
    found, learning = attention(x, reading(memory)), (x, memory, *attention.parameters())
    torch.testing.assert_close(found, expected)
    grads = (torch.autograd.grad(out.square().sum(), learning) for out in (found, expected))
    torch.testing.assert_close(*grads)


@torch.no_grad()
def test_numbers_that_a_pooling_left_out_change_nothing_and_the_last_section_takes_in_further_ones() -> None:
    attention, x, memory = make(), vectors(2, 5, DIM), vectors(2, 8, DIM, seed=1)
    others = torch.tensor([[7, 7, 7, 1, 1, 4, 4, 4], [3, 3, 3, 3, 3, -1, -1, -1]])
    torch.testing.assert_close(attention(x, reading(memory, others)), attention(x, reading(memory)))
    # What follows the last section that is told apart is part of it.
    torch.testing.assert_close(make(sections=2)(x, reading(memory)), make()(x, reading(memory, UNIT.clamp(max=1))))


@torch.no_grad()
def test_steps_of_two_hypotheses_read_what_a_whole_pass_does_and_follow_their_documents() -> None:
    attention, memory, state = make(), vectors(2, 8, DIM, seed=1), make().new_state()
    # (B, WT, D): the hypotheses of a document follow each other.
    x = vectors(2, 6, DIM)
    torch.testing.assert_close(attention.step(x, reading(memory), state), attention(x, reading(memory)))
    kept = torch.tensor([1])
    state.reorder(torch.tensor([2, 3]), kept)
    left = reading(memory[kept], UNIT[kept])
    torch.testing.assert_close(attention.step(x[kept], left, state), attention(x[kept], left))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_half_precision_comes_close_with_sections_of_thousands_of_words(dtype: torch.dtype) -> None:
    attention, x, memory = make(), vectors(1, 3, DIM), 4 + vectors(1, 9000, DIM, seed=1)
    context = reading(memory, torch.arange(9000)[None] // 6000)
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
    attention, x, memory = make(dropout=0.5).train(), vectors(1, 1, DIM), vectors(1, 8, DIM, seed=1)
    drawn = attention(x.expand(4000, -1, -1), reading(memory.expand(4000, -1, -1), UNIT[:1].expand(4000, -1)))
    assert drawn.std(dim=0).min() > 0.01
    torch.testing.assert_close(drawn.mean(0), attention.eval()(x, reading(memory, UNIT[:1]))[0], rtol=0, atol=0.05)
