"""Extracts that are sampled, and the overlap that rewards them."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from torch import Tensor

from pyramidions.extract.selection import Budget, SelectionRules, select
from pyramidions.plugin.criterions.reinforced_selection import OverlapReward, gumbel_keys, reinforce, select_by

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


@pytest.mark.parametrize("words", [4, 5, 9])
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


@pytest.mark.parametrize("words", [4, 5])
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
    draws = 20_000
    scores, lengths = (x.expand(draws, -1) for x in (SCORES, LENGTHS))
    keys = [torch.manual_seed(seed) and gumbel_keys(scores) for seed in (1, 1, 2)]
    # A seed repeats the draws.
    assert torch.equal(keys[0], keys[1]) and not torch.equal(keys[0], keys[2])
    chosen = select_by(keys[0], scores, lengths, 5).chosen
    found = Counter(tuple(row.nonzero().flatten().tolist()) for row in chosen)
    p = SCORES.softmax(0).tolist()
    assert found[0, 1] / draws == pytest.approx(p[0] + p[1], abs=0.02)
    assert found[2,] / draws == pytest.approx(p[2], abs=0.02)


def test_the_best_are_selected_as_an_extract_is() -> None:
    draw = np.random.default_rng(1)
    for _ in range(100):
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


# Ids 0 to 4 are no text; 4 stands between sentences.
IS_TEXT = torch.tensor([False] * 3 + [True, False] + [True] * 6)
SOURCE = torch.tensor([[5, 6, 4, 7, 5, 4, 6, 6, 2], [9, 4, 5, 2, 1, 1, 1, 1, 1]])
UNITS = SOURCE.eq(4).cumsum(1)
TARGET = torch.tensor([[5, 6, 4, 5, 7, 2], [10, 2, 1, 1, 1, 1]])


def rewards(*chosen: list[list[bool]], rouge2_weight: float = 1.0) -> list[list[float]]:
    reward = OverlapReward(UNITS, SOURCE, TARGET, IS_TEXT, 3, rouge2_weight)
    return reward(torch.tensor(chosen)).tolist()  # type: ignore[no-any-return]


NOTHING = [False, False, False]


def test_the_reward_is_rouge_1_plus_weighted_rouge_2() -> None:
    # The summary has the pieces 5 6, 5 7; the extract 5 6, 7 5: four in common, and of two bigrams the one 5 6.
    chosen = [[True, True, False], NOTHING]
    assert rewards(chosen)[0][0] == pytest.approx(1.0 + 2 * 1 / (2 + 2))
    assert rewards(chosen, rouge2_weight=0.5)[0][0] == pytest.approx(1.0 + 0.5 * 0.5)
    assert rewards(chosen, rouge2_weight=0.0)[0][0] == pytest.approx(1.0)
    # No bigram is of two sentences.
    apart = torch.tensor([[5, 4, 6, 2]])
    reward = OverlapReward(apart.eq(4).cumsum(1), apart, torch.tensor([[5, 6, 2]]), IS_TEXT, 2, 1.0)
    assert reward(torch.tensor([[[True, True]]])).item() == pytest.approx(1.0)


def test_repetitions_beyond_the_summary_do_not_count_as_hits() -> None:
    first = [[True, False, False], NOTHING]
    repeated = [[True, False, True], NOTHING]
    assert rewards(first, rouge2_weight=0.0)[0][0] == pytest.approx(2 * 2 / (2 + 4))
    assert rewards(repeated, rouge2_weight=0.0)[0][0] == pytest.approx(2 * 2 / (4 + 4))


def test_nothing_selected_and_nothing_in_common_is_no_reward() -> None:
    assert rewards([NOTHING, NOTHING], [NOTHING, [True, True, False]]) == [[0.0, 0.0], [0.0, 0.0]]


def test_selections_of_a_document_are_rewarded_one_by_one() -> None:
    several = [[[True, False, False], NOTHING], [[True, True, False], NOTHING]]
    assert rewards(*several) == [rewards(each)[0] for each in several]
