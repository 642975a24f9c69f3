"""What each scorer computes; what all of them promise is in tests/nn/scorer/test_contract.py."""

import pytest
import torch

from pyramidions.nn.scorer import SCORER, LinearScorer, Scorer
from pyramidions.nn.sequence import PoolingContext, Sequence

NO_CONTEXT = PoolingContext(received=lambda: pytest.fail("nothing asks for attention"))
NO_MASK = torch.zeros(2, 5).bool()


def make(kind: str, **options: object) -> Scorer:
    torch.manual_seed(0)
    return SCORER.build(kind, options, embed_dim=8, stride=3).eval()


def context() -> PoolingContext:
    return PoolingContext(received=lambda: torch.arange(10.0).view(2, 5))


def test_the_nonlinear_score_is_robertas_head() -> None:
    scorer, x = make("nonlinear"), torch.randn(2, 5, 8)
    head = torch.nn.Sequential(scorer.dense, torch.nn.Tanh(), scorer.linear)
    torch.testing.assert_close(scorer(Sequence(x, NO_MASK), NO_CONTEXT), head(x).sigmoid().squeeze(-1) + 1e-5)
    dropped = make("nonlinear", dropout=0.5).train()
    assert not torch.equal(dropped(Sequence(x, NO_MASK), NO_CONTEXT), dropped(Sequence(x, NO_MASK), NO_CONTEXT))


def test_a_linear_scorer_with_a_norm_rates_vectors_of_any_size_alike() -> None:
    scorer, x = make("linear", layer_norm=True), torch.randn(2, 5, 8)
    expected = torch.nn.functional.layer_norm(x, (8,)) @ scorer.linear.weight[0]
    scores = scorer(Sequence(x, NO_MASK), NO_CONTEXT)
    torch.testing.assert_close(scores, expected.sigmoid() + 1e-5)
    torch.testing.assert_close(scorer(Sequence(1000 * x, NO_MASK), NO_CONTEXT), scores, atol=1e-4, rtol=1e-4)
    # Without one, the sigmoid saturates.
    plain = make("linear")(Sequence(1000 * x, NO_MASK), NO_CONTEXT)
    assert ((plain < 0.01) | (plain > 0.99)).all()


def test_the_embedding_score_is_one_coordinate() -> None:
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(
        make("embedding", coordinate=3)(Sequence(x, NO_MASK), NO_CONTEXT), x[..., 3].sigmoid() + 1e-5
    )
    with pytest.raises(ValueError, match="`coordinate` must be at least 0 and below 8, but is 8."):
        make("embedding", coordinate=8)


def test_the_index_score_picks_every_third() -> None:
    assert make("index")(Sequence(torch.randn(2, 5, 8), NO_MASK), NO_CONTEXT).tolist() == [[1, 0, 0, 1, 0]] * 2


def test_the_attention_score_is_what_the_layer_before_says() -> None:
    scores = make("attention")(Sequence(torch.randn(2, 5, 8), NO_MASK), context())
    assert scores.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_random_scores_are_fresh_in_training_and_a_seed_repeats_them() -> None:
    scorer, x = make("random"), torch.randn(2, 5, 8)
    assert torch.equal(scorer(Sequence(x, NO_MASK), NO_CONTEXT), scorer(Sequence(x, NO_MASK), NO_CONTEXT))
    assert not torch.equal(
        scorer(Sequence(x, NO_MASK), NO_CONTEXT), make("random", seed=9)(Sequence(x, NO_MASK), NO_CONTEXT)
    )
    scorer.train()
    assert not torch.equal(scorer(Sequence(x, NO_MASK), NO_CONTEXT), scorer(Sequence(x, NO_MASK), NO_CONTEXT))
    drawn = []
    for _ in range(2):
        torch.manual_seed(4)
        drawn.append(scorer(Sequence(x, NO_MASK), NO_CONTEXT))
    assert torch.equal(*drawn)


def test_the_linear_score_is_a_sigmoid_above_1e_5() -> None:
    scorer = LinearScorer(2)
    with torch.no_grad():
        scorer.linear.weight.copy_(torch.tensor([[1.0, -2.0]]))
        scorer.linear.bias.fill_(0.5)
    x = torch.tensor([[[0.5, 0.5], [-1000.0, 0.0]]])
    scores = scorer(Sequence(x, torch.zeros(1, 2).bool()), NO_CONTEXT)
    torch.testing.assert_close(scores, torch.tensor([[0.5 + 1e-5, 1e-5]]))
