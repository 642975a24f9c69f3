"""Losses of a pointer network over sentences, by hand and by enumeration."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from pyramidions.nn.selector import PointerSelector, Steps
from pyramidions.plugin.criterions.pointing import (
    SentenceRewards,
    actor_critic,
    follow_labels,
    returns,
    set_cross_entropy,
)

KNOWN = torch.ones(1, 3, dtype=torch.bool)


def selector() -> PointerSelector:
    torch.manual_seed(0)
    made = PointerSelector(4).double()
    for weight in made.parameters():
        weight.data.normal_()
    return made


def units() -> Tensor:
    return torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def steps_of(chosen: list[int], log_probs: list[list[float]], values: list[float]) -> Steps:
    made = torch.tensor([chosen]), torch.tensor([log_probs]), torch.tensor([values])
    return Steps(*made, torch.ones(1, len(chosen), dtype=torch.bool))


def test_the_most_probable_labelled_sentence_is_followed_and_then_the_end() -> None:
    pick = follow_labels(torch.tensor([[True, False, True]]))
    log_probs, chosen = torch.tensor([[-3.0, -0.1, -2.0, -0.2]]), torch.zeros(1, 4, dtype=torch.bool)
    for wanted in (2, 0, 3):
        picked = pick(log_probs, chosen)
        assert picked.tolist() == [wanted]
        chosen[0, wanted] = True


def test_the_loss_of_labels_wants_all_labelled_sentences_that_are_left_as_much() -> None:
    probabilities = [[0.1, 0.2, 0.3, 0.4], [0.5, 0.2, 0.0, 0.3], [0.0, 0.6, 0.0, 0.4]]
    logs = [[math.log(p) if p else -math.inf for p in step] for step in probabilities]
    loss = set_cross_entropy(steps_of([2, 0, 3], logs, [0.0] * 3), torch.tensor([[True, False, True]]))
    assert loss.item() == pytest.approx(-((math.log(0.1) + math.log(0.3)) / 2 + math.log(0.5) + math.log(0.4)) / 3)


def test_a_document_without_labels_learns_to_end_at_once() -> None:
    labelled = torch.zeros(1, 3, dtype=torch.bool)
    steps = selector().steps(units(), KNOWN, follow_labels(labelled))
    assert steps.chosen.tolist() == [[3]]
    torch.testing.assert_close(set_cross_entropy(steps, labelled), -steps.log_probs[:, 0, 3])


def test_returns_are_discounted_sums_of_rewards_to_come() -> None:
    assert returns([[1.0, 0.5, 2.0], [3.0]]) == [pytest.approx([1 + 0.475 + 1.805, 2.4, 2]), [3]]


def test_the_loss_of_rewards_by_hand() -> None:
    # Of two documents: returns 1 + 0.95 * 3, 3 and 0, of mean 6.85 / 3.
    chosen = torch.tensor([[1, 3], [3, 0]])
    log_probs = torch.tensor(
        [[[-9.0, -2.0, -9.0, -9.0], [-9.0, -9.0, -9.0, -0.5]], [[-9.0, -9.0, -9.0, -1.0], [0] * 4]]
    )
    steps = Steps(
        chosen, log_probs, torch.tensor([[0.25, 0.5], [-0.5, 0]]), torch.tensor([[True, True], [True, False]])
    )
    deviation = np.std([3.85, 3.0, 0.0])
    first, second, third = ((each - 6.85 / 3) / deviation for each in (3.85, 3.0, 0.0))
    by_hand = [
        2 * (first - 0.25) + (first - 0.25) ** 2 + 0.5 * (second - 0.5) + (second - 0.5) ** 2,
        (third + 0.5) + (third + 0.5) ** 2,
    ]
    # Their sum, divided by the documents, is the mean of the three steps.
    losses = actor_critic(steps, [[1.0, 3.0], [0.0]])
    assert losses.tolist() == pytest.approx([2 / 3 * each for each in by_hand], abs=1e-4)


@pytest.mark.parametrize(
    ("selected", "rewards"),
    [
        # ROUGE-L of bees fly / bees fly: 1; of dogs / dogs bark: 2/3; all: 3 of 3 and 4 words, 6/7.
        (["bees fly", "dogs"], [1, 2 / 3, 6 / 7]),
        # None beyond the summary's last sentence; all: 3 of 4 and 4 words.
        (["bees fly", "cats", "dogs"], [1, 0, 0, 3 / 4]),
        ([], [0]),
    ],
)
def test_rewritten_sentences_are_rewarded_by_the_summarys_and_the_end_by_all(
    selected: list[str], rewards: list[float]
) -> None:
    assert SentenceRewards(list)([selected], [["bees fly", "dogs bark"]]) == [pytest.approx(rewards)]


@pytest.mark.parametrize(
    ("selected", "rewards"),
    [
        # bees fly: ROUGE-1 2 of 2 and 4 words, 2/3; ROUGE-2 1 of 1 and 3 pairs, 1/2. With dogs: 6/7, and 2 of 2 and 3.
        (["bees fly", "dogs"], [(2 / 3 + 1 / 2) / 2, (6 / 7 + 4 / 5) / 2 - (2 / 3 + 1 / 2) / 2, 0]),
        # What adds nothing lowers the share of what does.
        (["bees fly", "cats"], [7 / 12, (4 / 7 + 2 / 5) / 2 - 7 / 12, 0]),
        ([], [0]),
    ],
)
def test_sentences_as_they_are_get_what_they_add_to_the_rouge_of_all(selected: list[str], rewards: list[float]) -> None:
    assert SentenceRewards()([selected], [["bees fly", "dogs bark"]]) == [pytest.approx(rewards)]


def test_what_a_sentence_is_rewritten_to_is_rewarded_and_asked_for_once() -> None:
    asked: list[list[str]] = []

    def rewrite(texts: list[str]) -> list[str]:
        asked.append(texts)
        return [text.replace("wasps", "bees") for text in texts]

    rewards = SentenceRewards(rewrite)
    assert rewards([["wasps fly"], ["wasps fly", "dogs"]], [["bees fly"]] * 2)[0] == pytest.approx([1, 1])
    rewards([["dogs"]], [["dogs"]])
    assert asked == [["dogs", "wasps fly"]]
