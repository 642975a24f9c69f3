import pytest
import torch

from pyramidions.nn.scorer import SCORER, LinearScorer

kinds = pytest.mark.parametrize("kind", SCORER.names)


@kinds
def test_scores_are_finite_and_one_per_vector(kind: str) -> None:
    scorer = SCORER.build(kind, {}, embed_dim=8)
    assert scorer(torch.randn(2, 5, 8) * 1e4, torch.zeros(2, 5).bool()).shape == (2, 5)


@kinds
def test_half_precision_vectors_get_float32_scores(kind: str) -> None:
    scorer = SCORER.build(kind, {}, embed_dim=8).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert scorer(torch.randn(2, 5, 8).bfloat16(), torch.zeros(2, 5).bool()).dtype == torch.float32


def test_the_linear_score_is_a_sigmoid_above_1e_5() -> None:
    scorer = LinearScorer(2)
    with torch.no_grad():
        scorer.linear.weight.copy_(torch.tensor([[1.0, -2.0]]))
        scorer.linear.bias.fill_(0.5)
    scores = scorer(torch.tensor([[[0.5, 0.5], [-1000.0, 0.0]]]), torch.zeros(1, 2).bool())
    torch.testing.assert_close(scores, torch.tensor([[0.5 + 1e-5, 1e-5]]))
