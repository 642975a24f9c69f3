"""What every pooler promises; a new kind is held to it by being registered."""

import copy

import pytest
import torch
from tables import for_each
from torch import Tensor

from pyramidions.nn.attention import CrossAttention, FullAttention
from pyramidions.nn.feed_forward import DenseFeedForward
from pyramidions.nn.functional.topk import TopK, hard_topk
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.pooling import POOLING, Pooler, TopKPooler
from pyramidions.nn.projections import DenseProjections
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.sequence import PoolingContext, Sequence

kinds = pytest.mark.parametrize("kind", POOLING.names)
SELECTING = [kind for kind in POOLING.names if POOLING[kind].takes_scorer]
DIM, K, LONGEST = 8, 4, 40
NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("a linear scorer asks for no attention"))


def make(kind: str, **options: object) -> Pooler:
    torch.manual_seed(0)
    scorer = SCORER.build("linear", {}, embed_dim=DIM)
    functions = {
        "cross_attention": CrossAttention(DenseProjections(DIM, 2), FullAttention()),
        "feed_forward": DenseFeedForward(DIM, 16),
    }
    layer = Layer({name: Sublayer(function, DIM) for name, function in functions.items()})
    given = {"k": K, "window": LONGEST // K, "scorer": scorer, "layer": layer, "confined_to": LONGEST // K}
    given |= {"embed_dim": DIM, "ffn_embed_dim": 16}
    return POOLING.build(kind, options, **given).eval()


def batch(*lengths: int) -> Sequence:
    x = torch.randn(
        len(lengths), max(lengths), DIM, generator=torch.Generator(torch.get_default_device()).manual_seed(1)
    )
    position = torch.arange(max(lengths)).expand(x.shape[:2])
    # A sentence of one word each: as many vectors as possible come out of every kind.
    return Sequence(x, position >= torch.tensor(lengths)[:, None], position, unit=position)


@kinds
@for_each("length", [1, 4, 5, 9, 33])
def test_at_most_k_vectors_come_out(kind: str, length: int) -> None:
    pooled = make(kind)(batch(length), NO_CONTEXT)
    most = -(-length // (LONGEST // K)) if POOLING[kind].takes_window else min(length, K)
    count = pooled.x.size(1)
    assert pooled.x.shape == (1, count, DIM)
    # Where segments or deletions are learned, there may be fewer.
    assert 1 <= count <= min(length, K) if POOLING[kind].most else count == most
    assert pooled.padding_mask.shape == (1, count) and not pooled.padding_mask.any()


@kinds
def test_how_many_vectors_come_out_of_a_document_is_known_from_its_length(kind: str) -> None:
    pooler = make(kind)
    for lengths in ([13, 6, 0], [40, 10, 1], [3, 2, 2]):
        real = ~pooler(batch(*lengths), NO_CONTEXT).padding_mask
        known = [pooler.kept(length) for length in lengths]
        assert known in (real.sum(dim=1).tolist(), [None] * 3)
        # Padding comes after them.
        assert real.equal(real.byte().sort(dim=1, descending=True).values.bool())


@kinds
def test_values_at_padding_never_change_a_real_output(kind: str) -> None:
    pooler, given = make(kind), batch(13, 6)
    before = pooler(given, NO_CONTEXT)
    after = pooler(given._replace(x=given.x.masked_fill(given.padding_mask[..., None], 1e4)), NO_CONTEXT)
    assert torch.equal(after.padding_mask, before.padding_mask)
    assert torch.equal(after.x[~after.padding_mask], before.x[~before.padding_mask])


@kinds
@for_each("length", [1, 3, 4, 7])
def test_a_document_does_not_depend_on_its_batch_or_padding(kind: str, length: int) -> None:
    pooler, given = make(kind), batch(LONGEST, length)
    second = Sequence(*(None if of is None else of[1:, :length] for of in given))
    together, alone = pooler(given, NO_CONTEXT), pooler(second, NO_CONTEXT)
    torch.testing.assert_close(
        together.x[1][~together.padding_mask[1]], alone.x[0][~alone.padding_mask[0]], rtol=0, atol=1e-6
    )


@kinds
def test_a_fully_padded_row_stays_finite(kind: str) -> None:
    given = batch(9, 9)
    given.padding_mask[1] = True
    pooled = make(kind)(given, NO_CONTEXT)
    assert pooled.x.isfinite().all() and pooled.padding_mask[1].all()


@kinds
@pytest.mark.parametrize("length", [1, 13])
def test_gradients_reach_every_input_and_parameter_even_of_one_token(kind: str, length: int) -> None:
    pooler, given = make(kind), batch(length)
    x = given.x.requires_grad_()
    pooler(given, NO_CONTEXT).x.square().sum().backward()
    assert x.grad is not None and x.grad.abs().sum() > 0
    assert all(p.grad is not None and p.grad.isfinite().all() for p in pooler.parameters())


@kinds
@pytest.mark.parametrize("training", [True, False])
def test_mixed_precision_hands_on_the_type_that_it_was_given(kind: str, training: bool) -> None:
    with torch.autocast(torch.get_default_device().type, torch.bfloat16):
        assert make(kind).train(training)(batch(13, 6), NO_CONTEXT).x.dtype == torch.float32


@kinds
def test_a_pooler_can_be_copied_after_a_training_pass(kind: str) -> None:
    pooler = make(kind).train()
    pooler(batch(13, 6), NO_CONTEXT)
    copied = copy.deepcopy(pooler)
    assert all(map(torch.equal, copied.parameters(), pooler.parameters()))


@kinds
def test_provenance_weights_rebuild_the_pooled_vectors(kind: str) -> None:
    given = batch(13, 6)
    pooled, x = make(kind)(given, NO_CONTEXT), given.x
    assert (pooled.sources is not None) == POOLING[kind].has_provenance
    if pooled.sources is None or pooled.weights is None:
        assert pooled.sources is pooled.weights is None
        return
    rebuilt = torch.stack(
        [
            sum(w * x[row, s] for s, w in zip(sources, weights, strict=True))
            for row in range(2)
            for sources, weights in zip(pooled.sources[row], pooled.weights[row], strict=True)
        ]
    )
    torch.testing.assert_close(rebuilt.view_as(pooled.x), pooled.x)


@pytest.mark.parametrize("kind", [kind for kind in POOLING.names if "inference" in POOLING.arguments(kind)])
def test_hard_inference_hands_on_the_best_as_they_are(kind: str) -> None:
    given = batch(13, 6)
    pooler, hard = make(kind, inference="hard"), make("hard_topk")
    assert torch.equal(pooler(given, NO_CONTEXT).x, hard(given, NO_CONTEXT).x)
    assert not torch.equal(pooler.train()(given, NO_CONTEXT).x, hard(given, NO_CONTEXT).x)
    with pytest.raises(ValueError, match="`inference` must be one of soft, hard, but is 'firm'."):
        make(kind, inference="firm")


@pytest.mark.parametrize("kind", [kind for kind in SELECTING if "temperature" in POOLING.arguments(kind)])
def test_a_low_temperature_selects_hard_and_none_is_refused(kind: str) -> None:
    given = batch(13, 6)
    cold, hard = make(kind, temperature=1e-6), make("hard_topk")
    torch.testing.assert_close(cold(given, NO_CONTEXT).x, hard(given, NO_CONTEXT).x)
    with pytest.raises(ValueError, match="`temperature` must be above 0, but is 0."):
        make(kind, temperature=0)


@pytest.mark.parametrize("kind", [kind for kind in POOLING.names if POOLING[kind].takes_scorer])
def test_a_gradient_that_half_precision_cannot_sum_stays_finite(kind: str) -> None:
    # 4 x 8 x 2 ** 12 is more than float16 holds; the scorer needs no such sum.
    given = batch(13)
    pooler, x = make(kind).half(), given.x.half().requires_grad_()
    pooled = pooler(given._replace(x=x), NO_CONTEXT).x
    pooled.backward(torch.full_like(pooled, 2.0**12))
    assert x.grad is not None and x.grad.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in pooler.parameters())


def test_selected_vectors_are_handed_on_without_a_copy() -> None:
    selected: list[TopK] = []

    def operator(*args: Tensor, **options: Tensor) -> TopK:
        selected.append(hard_topk(*args, **options))
        return selected[0]

    pooler = TopKPooler(K, SCORER.build("linear", {}, embed_dim=DIM), operator, operator)
    assert pooler(batch(13), NO_CONTEXT).x.data_ptr() == selected[0].x.data_ptr()


@kinds
def test_a_pooled_vector_stands_where_its_strongest_member_does(kind: str) -> None:
    given = batch(13, 6)
    pooled = make(kind)(given, NO_CONTEXT)
    position = pooled.sequence(given, None).position
    if pooled.sources is None or pooled.weights is None:
        assert position is None
        return
    assert position is not None
    for row, vector in (~pooled.padding_mask).nonzero().tolist():
        strongest = int(pooled.weights[row, vector].argmax())
        assert position[row, vector] == pooled.sources[row, vector, strongest]
