"""What every pooler promises; a new kind is held to it by being registered."""

import copy
import itertools

import pytest
import torch

from pyramidions.nn.attention import CrossAttention, FullAttention
from pyramidions.nn.feed_forward import DenseFeedForward
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.pooling import POOLING, Pooler
from pyramidions.nn.pooling.topk import SoftTopKPooler
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
def test_at_most_k_vectors_come_out(kind: str) -> None:
    for length in (1, 5, 33):
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
def test_values_at_padding_never_change_a_real_output_and_a_row_of_padding_stays_finite(kind: str) -> None:
    pooler, given = make(kind), batch(13, 6, 13)
    given.padding_mask[2] = True
    before = pooler(given, NO_CONTEXT)
    assert before.x.isfinite().all() and before.padding_mask[2].all()
    after = pooler(given._replace(x=given.x.masked_fill(given.padding_mask[..., None], 1e4)), NO_CONTEXT)
    assert torch.equal(after.padding_mask, before.padding_mask)
    assert torch.equal(after.x[~after.padding_mask], before.x[~before.padding_mask])


@kinds
def test_mixed_precision_hands_on_the_type_that_it_was_given_and_a_trained_pooler_can_be_copied(kind: str) -> None:
    pooler = make(kind)
    with torch.autocast(torch.get_default_device().type, torch.bfloat16):
        for training in (False, True):
            assert pooler.train(training)(batch(13, 6), NO_CONTEXT).x.dtype == torch.float32
    assert all(map(torch.equal, copy.deepcopy(pooler).parameters(), pooler.parameters()))


@kinds
def test_provenance_rebuilds_the_pooled_vectors_which_stand_where_their_strongest_members_do(kind: str) -> None:
    given = batch(13, 6)
    pooled, x = make(kind)(given, NO_CONTEXT), given.x
    position = pooled.sequence(given, None).position
    assert (pooled.sources is not None) == POOLING[kind].has_provenance
    if pooled.sources is None or pooled.weights is None:
        assert pooled.sources is pooled.weights is position is None
        return
    assert position is not None
    for row, vector in itertools.product(range(2), range(pooled.x.size(1))):
        sources, weights = pooled.sources[row, vector], pooled.weights[row, vector]
        torch.testing.assert_close((weights[:, None] * x[row, sources]).sum(0), pooled.x[row, vector])
        assert pooled.padding_mask[row, vector] or position[row, vector] == sources[weights.argmax()]


@pytest.mark.parametrize("kind", [kind for kind in POOLING.names if "inference" in POOLING.arguments(kind)])
def test_hard_inference_hands_on_the_best_as_they_are(kind: str) -> None:
    given = batch(13, 6)
    pooler, hard = make(kind, inference="hard"), make("hard_topk")
    assert torch.equal(pooler(given, NO_CONTEXT).x, hard(given, NO_CONTEXT).x)
    assert not torch.equal(pooler.train()(given, NO_CONTEXT).x, hard(given, NO_CONTEXT).x)


@pytest.mark.parametrize("kind", [kind for kind in SELECTING if "temperature" in POOLING.arguments(kind)])
def test_a_low_temperature_selects_hard(kind: str) -> None:
    given = batch(13, 6)
    cold, hard = make(kind, temperature=1e-6), make("hard_topk")
    torch.testing.assert_close(cold(given, NO_CONTEXT).x, hard(given, NO_CONTEXT).x)


@pytest.mark.parametrize("kind", [kind for kind in POOLING.names if POOLING[kind].takes_scorer])
def test_a_gradient_that_half_precision_cannot_sum_stays_finite(kind: str) -> None:
    # 4 x 8 x 2 ** 12 is more than float16 holds; the scorer needs no such sum.
    given = batch(13)
    pooler, x = make(kind).half(), given.x.half().requires_grad_()
    pooled = pooler(given._replace(x=x), NO_CONTEXT).x
    pooled.backward(torch.full_like(pooled, 2.0**12))
    assert x.grad is not None and x.grad.isfinite().all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in pooler.parameters())


def test_the_base_of_soft_selection_changes_what_comes_out_but_not_of_a_short_batch() -> None:
    scorer, given = SCORER.build("linear", {}, embed_dim=DIM), batch(9)
    outputs = [SoftTopKPooler(K, scorer, base=base)(given, NO_CONTEXT).x for base in (20.0, 5.0, None)]
    assert not torch.equal(outputs[0], outputs[1]) and not torch.equal(outputs[1], outputs[2])
    assert SoftTopKPooler(K, scorer)(batch(3), NO_CONTEXT).x.equal(batch(3).x)
