"""Attention that weighs sections, against a loop over words and sections."""

import math

import pytest
import torch
from small_parts import vectors
from tables import for_each
from torch import Tensor
from whole_models import PAD, batch, tiny

from pyramidions.base.errors import UserError
from pyramidions.models import build, preset
from pyramidions.nn.attention import CrossAttention, DiscourseAttention
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.sublayer import LayerContext, Memory

DIM, HEADS = 16, 4
# Two documents of eight words: one of three sections, one of a single section and padding.
UNIT = torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2], [0, 0, 0, 0, 0, -1, -1, -1]])


def make(dropout: float = 0.0, sections: int = 64) -> CrossAttention:
    torch.manual_seed(0)
    made = CrossAttention(DenseProjections(DIM, HEADS), DiscourseAttention(sections, dropout))
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.3)
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


@torch.no_grad()
def test_the_score_of_a_word_is_multiplied_by_the_attention_to_its_section() -> None:
    attention, x, memory = make(), vectors(2, 5, DIM), vectors(2, 8, DIM, seed=1)
    expected = by_loops(attention, x, memory, UNIT)
    torch.testing.assert_close(attention.weights(x, reading(memory)), expected)
    values = attention.projections.keys_values(memory)[1]
    torch.testing.assert_close(attention(x, reading(memory)), attention.projections.output(expected @ values))


def test_gradients_are_those_of_the_loops() -> None:
    attention = make().double()
    x, memory = (vectors(2, n, DIM, seed=n).double().requires_grad_() for n in (3, 8))
    expected = by_loops(attention, x, memory, UNIT) @ attention.projections.keys_values(memory)[1]
    inputs = (x, memory, *attention.parameters())
    wanted = torch.autograd.grad(attention.projections.output(expected).square().sum(), inputs)
    found = torch.autograd.grad(attention(x, reading(memory)).square().sum(), inputs)
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_two_words_in_two_sections_by_hand() -> None:
    # The query meets one key with ln 2 and the other with 0, so that sections weigh 2/3 and 1/3.
    k = torch.tensor([[[[math.log(2.0)], [0.0]]]])
    sections_and_words = torch.cat([k, k], dim=2)
    weights = DiscourseAttention().weights(
        torch.ones(1, 1, 1, 1), sections_and_words, LayerContext(torch.tensor([[0, 1]]))
    )
    first = 2 ** (2 / 3)
    torch.testing.assert_close(weights, torch.tensor([[[[first / (first + 1), 1 / (first + 1)]]]]))


@torch.no_grad()
def test_sections_that_a_pooling_left_out_and_their_order_change_nothing() -> None:
    attention, x, memory = make(), vectors(2, 5, DIM), vectors(2, 8, DIM, seed=1)
    others = torch.tensor([[7, 7, 7, 1, 1, 4, 4, 4], [3, 3, 3, 3, 3, -1, -1, -1]])
    torch.testing.assert_close(attention(x, reading(memory, others)), attention(x, reading(memory)))


@torch.no_grad()
def test_what_follows_the_last_section_that_is_told_apart_is_part_of_it() -> None:
    x, memory = vectors(2, 5, DIM), vectors(2, 8, DIM, seed=1)
    torch.testing.assert_close(make(sections=2)(x, reading(memory)), make()(x, reading(memory, UNIT.clamp(max=1))))


@torch.no_grad()
def test_a_document_of_one_section_is_read_by_full_attention() -> None:
    attention, x, memory = make(), vectors(1, 5, DIM), vectors(1, 8, DIM, seed=1)
    whole = LayerContext(None, (Memory(memory),))
    torch.testing.assert_close(attention(x, reading(memory, torch.zeros(1, 8, dtype=torch.long))), attention(x, whole))


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


@for_each("dtype", [torch.bfloat16, torch.float16])
@torch.no_grad()
def test_half_precision_comes_close_with_sections_of_thousands_of_words(dtype: torch.dtype) -> None:
    attention, x, memory = make(), vectors(1, 3, DIM), 4 + vectors(1, 9000, DIM, seed=1)
    context = reading(memory, torch.arange(9000)[None] // 6000)
    with torch.autocast("cpu", dtype):
        found = attention(x, context)
    torch.testing.assert_close(found.float(), attention(x, context), rtol=0.05, atol=0.05)


@torch.no_grad()
def test_dropout_acts_on_the_weights_of_words() -> None:
    attention, x, memory = make(dropout=0.5).train(), vectors(2, 1, DIM), vectors(2, 8, DIM, seed=1)
    drawn = torch.stack([attention(x, reading(memory)) for _ in range(4000)])
    assert drawn.std(dim=0).min() > 0.01
    torch.testing.assert_close(drawn.mean(dim=0), attention.eval()(x, reading(memory)), rtol=0, atol=0.05)


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


def test_a_vocabulary_without_markers_is_refused() -> None:
    with pytest.raises(UserError, match=r"^`cross_attention` 'discourse' needs a vocabulary with markers: prepare"):
        build(preset("discourse_pointer", self_attention="full"), 30)


@for_each("memories", ["last", "1,last"])
def test_a_memory_behind_a_pooling_that_loses_units_is_refused(memories: str) -> None:
    with pytest.raises(UserError, match=r"^`cross_attention` 'discourse' must not follow `pooling` 'max', which loses"):
        tiny("full", "max", cross_attention="discourse", memories=memories)


def test_a_memory_before_such_a_pooling_keeps_its_units() -> None:
    tiny("full", "max", cross_attention="discourse(); full", memories="1,last")
