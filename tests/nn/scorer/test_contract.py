"""What every scorer promises, a new kind by being registered, and what each of them computes."""

import pytest
import torch
from small_parts import DIM, SETTING, ends_after, vectors
from torch import Tensor

from pyramidions.nn.marks import Marks
from pyramidions.nn.scorer import SCORER, LinearScorer, Scorer
from pyramidions.nn.sequence import PoolingContext, Sequence

kinds = pytest.mark.parametrize("kind", SCORER.names)
# What hands on how much attention was received is held to the contract of attention.
own = pytest.mark.parametrize("kind", [kind for kind in SCORER.names if not SCORER[kind].reads_attention])
NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("nothing asks for attention"))


def make(kind: str, **options: object) -> Scorer:
    torch.manual_seed(0)
    return SCORER.build(kind, options, **SETTING, stride=3).eval()


def context() -> PoolingContext:
    return PoolingContext(received=lambda: torch.arange(10.0).view(2, 5))


def sequence(x: Tensor, padding: Tensor | None = None) -> Sequence:
    """Return vectors of which the first is a query."""
    padding = torch.zeros(x.shape[:2], dtype=torch.bool) if padding is None else padding
    query = torch.zeros_like(padding)
    query[:, 0] = True
    return Sequence(x, padding, query=Marks(query, 2))


def without_query(x: Tensor) -> Sequence:
    return Sequence(x, torch.zeros(x.shape[:2], dtype=torch.bool))


@kinds
def test_scores_are_finite_and_one_per_vector(kind: str) -> None:
    scores = make(kind)(sequence(vectors(2, 5, DIM) * 1e4), context())
    assert scores.shape == (2, 5) and scores.isfinite().all()


@kinds
def test_half_precision_vectors_get_float32_scores(kind: str) -> None:
    scorer, x = make(kind).bfloat16(), vectors(2, 5, DIM).bfloat16()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        assert scorer(sequence(x), context()).dtype == torch.float32


@own
def test_a_document_scores_the_same_alone_and_in_a_longer_batch_whatever_its_padding(kind: str) -> None:
    scorer, x, padding = make(kind), vectors(2, 5, DIM), ends_after(5, 2)
    before = scorer(sequence(x, padding), NO_CONTEXT)
    other = x.masked_fill(padding[..., None], 1e4)
    assert scorer(sequence(other, padding), NO_CONTEXT)[~padding].equal(before[~padding])
    alone, longer = x[:1], torch.cat([x[:1], vectors(1, 2000, DIM, seed=1)], dim=1)
    together = scorer(sequence(longer), NO_CONTEXT)
    torch.testing.assert_close(together[:, :5], scorer(sequence(alone), NO_CONTEXT), rtol=0, atol=1e-6)


@kinds
def test_a_gradient_reaches_every_parameter_and_is_finite_whatever_is_scored(kind: str) -> None:
    scorer, x = make(kind).train(), vectors(2, 5, DIM)
    x[0] *= 1e4
    scores = scorer(sequence(x.requires_grad_()), context())
    parameters = dict(scorer.named_parameters())
    assert scores.requires_grad or not parameters
    if scores.requires_grad:
        grads = torch.autograd.grad(scores.sum(), [x, *parameters.values()])
        assert all(grad.isfinite().all() and grad.any() for grad in grads)


def test_the_nonlinear_score_is_robertas_head() -> None:
    scorer, x = make("nonlinear"), torch.randn(2, 5, 8)
    head = torch.nn.Sequential(scorer.dense, torch.nn.Tanh(), scorer.linear)
    torch.testing.assert_close(scorer(without_query(x), NO_CONTEXT), head(x).sigmoid().squeeze(-1) + 1e-5)
    dropped = make("nonlinear", dropout=0.5).train()
    assert not torch.equal(dropped(without_query(x), NO_CONTEXT), dropped(without_query(x), NO_CONTEXT))


def test_a_linear_scorer_with_a_norm_rates_vectors_of_any_size_alike() -> None:
    scorer, x = make("linear", layer_norm=True), torch.randn(2, 5, 8)
    expected = torch.nn.functional.layer_norm(x, (8,)) @ scorer.linear.weight[0]
    scores = scorer(without_query(x), NO_CONTEXT)
    torch.testing.assert_close(scores, expected.sigmoid() + 1e-5)
    torch.testing.assert_close(scorer(without_query(1000 * x), NO_CONTEXT), scores, atol=1e-4, rtol=1e-4)
    # Without one, the sigmoid saturates.
    plain = make("linear")(without_query(1000 * x), NO_CONTEXT)
    assert ((plain < 0.01) | (plain > 0.99)).all()


def test_the_embedding_score_is_one_coordinate() -> None:
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(
        make("embedding", coordinate=3)(without_query(x), NO_CONTEXT), x[..., 3].sigmoid() + 1e-5
    )


def test_the_index_score_picks_every_third_and_the_attention_score_is_what_the_layer_before_says() -> None:
    x = without_query(torch.randn(2, 5, 8))
    assert make("index")(x, NO_CONTEXT).tolist() == [[1, 0, 0, 1, 0]] * 2
    assert make("attention")(x, context()).tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_random_scores_are_fresh_in_training_and_those_of_a_seed_in_evaluation() -> None:
    scorer, x = make("random"), without_query(torch.randn(2, 5, 8))
    assert torch.equal(scorer(x, NO_CONTEXT), scorer(x, NO_CONTEXT))
    assert not torch.equal(scorer(x, NO_CONTEXT), make("random", seed=9)(x, NO_CONTEXT))
    scorer.train()
    assert not torch.equal(scorer(x, NO_CONTEXT), scorer(x, NO_CONTEXT))


def test_the_linear_score_is_a_sigmoid_above_1e_5() -> None:
    scorer = LinearScorer(2)
    with torch.no_grad():
        scorer.linear.weight.copy_(torch.tensor([[1.0, -2.0]]))
        scorer.linear.bias.fill_(0.5)
    x = torch.tensor([[[0.5, 0.5], [-1000.0, 0.0]]])
    scores = scorer(without_query(x), NO_CONTEXT)
    torch.testing.assert_close(scores, torch.tensor([[0.5 + 1e-5, 1e-5]]), rtol=0, atol=1e-7)
