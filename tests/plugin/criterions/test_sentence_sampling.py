import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from tables import for_each
from torch import Tensor

from pyramidions.extract.selection import Budget, SelectionRules, select
from pyramidions.plugin.criterions.extractive_summarization import reinforce
from pyramidions.plugin.criterions.sentence_sampling import gumbel_keys, select_by

SCORES = torch.tensor([0.5, -1.0, 1.2], dtype=torch.float64)
LENGTHS = torch.tensor([3, 2, 4])


def in_order(order: tuple[int, ...], scores: Tensor, lengths: Tensor, words: int) -> tuple[tuple[int, ...], Tensor]:
    """Return what is selected if sentences come in this order, in the order of selection, and its log-probability."""
    keys = torch.empty_like(scores)
    keys[list(order)] = torch.arange(len(order), 0, -1).to(keys)
    selected = select_by(keys[None], scores[None], lengths[None], words)
    return tuple(i for i in order if selected.chosen[0, i]), selected.log_prob[0]


def outcomes(scores: Tensor, lengths: Tensor, words: int) -> dict[tuple[int, ...], Tensor]:
    return dict(in_order(order, scores, lengths, words) for order in itertools.permutations(range(len(scores))))


@for_each("words", [2, 4, 5, 6, 9])
def test_the_probabilities_of_all_ordered_selections_sum_to_one(words: int) -> None:
    total = sum(log_prob.exp() for log_prob in outcomes(SCORES, LENGTHS, words).values())
    assert total.item() == pytest.approx(1)  # type: ignore[union-attr]


def test_each_sentence_is_drawn_from_the_softmax_of_those_that_still_fit() -> None:
    # 3 + 2 words fit into 5, 4 + 2 do not: behind the third sentence there is nothing to draw.
    found = outcomes(SCORES, LENGTHS, 5)
    p = SCORES.softmax(0)
    expected = {(0, 1): p[0], (1, 0): p[1], (2,): p[2]}
    assert {order: log_prob.exp().item() for order, log_prob in found.items()} == {
        order: pytest.approx(value.item()) for order, value in expected.items()
    }


@for_each("words", [4, 5, 6])
def test_the_mean_of_the_estimator_is_the_gradient_of_the_expected_reward(words: int) -> None:
    def reward(order: tuple[int, ...]) -> Tensor:
        return torch.tensor(sum((1, 5, 2)[i] for i in order) + 0.5 * (order == (2,)))

    scores = SCORES.clone().requires_grad_()
    found = outcomes(scores, LENGTHS, words)
    expected = -sum(log_prob.exp() * reward(order) for order, log_prob in found.items())
    (exact,) = torch.autograd.grad(expected, scores, retain_graph=True)  # type: ignore[arg-type]
    for baseline in (0.0, 3.0):
        # All samples, each as often as it is drawn.
        mean = sum(
            log_prob.detach().exp() * reinforce(log_prob, reward(order), torch.tensor(baseline))
            for order, log_prob in found.items()
        )
        (estimated,) = torch.autograd.grad(mean, scores, retain_graph=True)  # type: ignore[arg-type]
        torch.testing.assert_close(estimated, exact)
    assert exact.abs().max() > 0.1


def test_selections_are_drawn_as_often_as_they_are_probable() -> None:
    torch.manual_seed(1)
    draws = 20_000
    scores, lengths = (x.expand(draws, -1) for x in (SCORES, LENGTHS))
    chosen = select_by(gumbel_keys(scores), scores, lengths, 5).chosen
    found = Counter(tuple(row.nonzero().flatten().tolist()) for row in chosen)
    p = SCORES.softmax(0).tolist()
    assert found[0, 1] / draws == pytest.approx(p[0] + p[1], abs=0.02)
    assert found[2,] / draws == pytest.approx(p[2], abs=0.02)


def test_a_seed_repeats_the_draws() -> None:
    drawn = [torch.manual_seed(seed) and gumbel_keys(SCORES) for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_the_best_are_selected_as_an_extract_is() -> None:
    draw = np.random.default_rng(1)
    for _ in range(200):
        lengths = draw.integers(1, 9, 7)
        scores = np.where(draw.random(7) < 0.2, -np.inf, draw.normal(size=7))
        words = int(draw.integers(1, 25))
        expected = select([" ".join(["w"] * n) for n in lengths], scores, SelectionRules(Budget(words=words)))
        given = torch.tensor(scores)[None]
        chosen = select_by(given, given, torch.tensor(lengths)[None], words).chosen[0]
        assert chosen.nonzero().flatten().tolist() == expected


def test_documents_are_selected_from_independently() -> None:
    scores = torch.tensor([[1.0, 2.0, -torch.inf], [3.0, 2.0, 1.0], [-torch.inf] * 3], requires_grad=True)
    lengths = torch.tensor([[2, 2, 1], [1, 1, 1], [1, 1, 1]])
    together = select_by(scores, scores, lengths, 3)
    assert together.chosen.tolist() == [[False, True, False], [True, True, True], [False, False, False]]
    alone = [select_by(scores[i : i + 1], scores[i : i + 1], lengths[i : i + 1], 3) for i in range(3)]
    torch.testing.assert_close(together.log_prob, torch.cat([each.log_prob for each in alone]))
    (gradient,) = torch.autograd.grad(together.log_prob.sum(), scores)
    assert gradient.isfinite().all() and (gradient[2] == 0).all()
