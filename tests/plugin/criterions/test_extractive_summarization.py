import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.logging import metrics
from refusals import refused
from torch import Tensor

from pyramidions.plugin.criterions.extractive_summarization import ExtractiveSummarizationCriterion

MARKER = 4
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "<n>", "▁a", "▁b", "▁c", "d", "▁e"]
TASK: Any = SimpleNamespace(
    target_dictionary=SimpleNamespace(pad=lambda: 1),
    source_dictionary=SimpleNamespace(symbols=PIECES),
    preprocessing=SimpleNamespace(need_tokenizer=lambda: SimpleNamespace(marker_id=MARKER)),
    extract_words=2,
    points=False,
)
# A heading and three sentences; then a single sentence.
SOURCE = torch.tensor([[9, 4, 5, 6, 4, 7, 8, 4, 5, 2], [9, 8, 2, 1, 1, 1, 1, 1, 1, 1]])
LABELS = torch.tensor([[0, 2, 1, 1], [2, 0, 0, 0]])
SAMPLE = {
    "net_input": {"src_tokens": SOURCE},
    "labels": LABELS,
    "target": torch.tensor([[5, 6, 2], [9, 2, 1]]),
    "ntokens": 13,
}
SCORES = torch.tensor([[9.0, 0.5, -1.0, 2.0], [1.0, -torch.inf, -torch.inf, -torch.inf]])


def criterion(
    positive_weight: float = 1.0, reward_weight: float = 0.0, reward_samples: int = 1, reward_rouge2: float = 1.0
) -> ExtractiveSummarizationCriterion:
    return ExtractiveSummarizationCriterion(TASK, positive_weight, reward_weight, reward_samples, reward_rouge2, None)


class Model:
    def __init__(self, scores: Tensor = SCORES) -> None:
        self.scores = scores.clone().requires_grad_()

    def __call__(self, **unused: Any) -> Tensor:
        return self.scores


def cross_entropy(score: float, positive: bool) -> float:
    return math.log1p(math.exp(-score if positive else score))


@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_the_loss_is_the_mean_cross_entropy_of_each_documents_sentences(weight: float) -> None:
    first = (weight * cross_entropy(0.5, True) + cross_entropy(-1.0, False) + cross_entropy(2.0, False)) / 3
    loss, documents, _ = criterion(positive_weight=weight)(Model(), SAMPLE)
    assert loss.item() == pytest.approx(first + weight * cross_entropy(1.0, True))
    assert documents == 2


def test_headings_and_dropped_sentences_have_no_gradient() -> None:
    scores = SCORES.clone()
    scores[0, 3] = -torch.inf
    for weight in (0.0, 0.5):
        torch.manual_seed(1)
        model = Model(scores)
        loss, _, _ = criterion(reward_weight=weight)(model, SAMPLE)
        loss.backward()
        assert model.scores.grad is not None and model.scores.grad.isfinite().all()
        assert (model.scores.grad != 0).tolist()[0][::3] == [False, False]
        assert loss.isfinite()


def test_a_document_without_a_sentence_does_not_count() -> None:
    sample = {**SAMPLE, "labels": torch.tensor([[0, 2, 1, 1], [0, 0, 0, 0]])}
    loss, documents, log = criterion(reward_weight=0.5)(Model(), sample)
    assert documents == 1 and loss.isfinite()
    none = {**SAMPLE, "labels": torch.zeros_like(LABELS)}
    model = Model()
    loss, documents, log = criterion(reward_weight=0.5)(model, none)
    loss.backward()
    assert (documents, loss.item()) == (0, 0.0)
    with metrics.aggregate() as logged:
        ExtractiveSummarizationCriterion.reduce_metrics([log])
    assert logged["loss"].avg == 0 and "precision" not in logged


def test_precision_is_the_share_of_chosen_sentences_among_as_many_of_the_best() -> None:
    _, _, log = criterion()(Model(), SAMPLE)
    with metrics.aggregate() as logged:
        ExtractiveSummarizationCriterion.reduce_metrics([log])
    # The third sentence is above the chosen one in the first document.
    assert logged["precision"].avg == 50
    assert logged["loss"].avg == pytest.approx(log["loss"].item() / 2 / math.log(2))


def test_all_reward_and_no_cross_entropy_is_the_reinforced_loss() -> None:
    def run(weight: float) -> tuple[float, dict[str, Any]]:
        torch.manual_seed(3)
        loss, _, log = criterion(reward_weight=weight, reward_samples=4)(Model(), SAMPLE)
        return loss.item(), log

    supervised = criterion()(Model(), SAMPLE)[0].item()
    reinforced, log = run(1.0)
    assert run(0.25)[0] == pytest.approx(0.75 * supervised + 0.25 * reinforced)
    assert log["cross_entropy"].item() == pytest.approx(supervised)


def test_the_baseline_is_the_reward_of_the_best_sentences() -> None:
    torch.manual_seed(1)
    _, _, log = criterion(reward_weight=1.0)(Model(), SAMPLE)
    # Of two words, the last sentence (a) is best, and the third (c d) fits behind it; the summary is a b. Then e d, e.
    assert log["reward"].item() == pytest.approx(2 * 1 / (3 + 2) + 2 * 1 / (2 + 1))


def test_rewarded_selections_become_more_probable_and_the_seed_decides_which_are_drawn() -> None:
    def gradient(samples: int) -> Tensor:
        torch.manual_seed(1)
        model = Model()
        criterion(reward_weight=1.0, reward_samples=samples)(model, SAMPLE)[0].backward()
        assert model.scores.grad is not None
        return model.scores.grad

    many = gradient(256)
    # Descent raises the sentence that is the summary.
    assert many[0, 1] < 0 < many[0, 3]
    assert torch.equal(gradient(1), gradient(1)) and not torch.equal(gradient(1), gradient(3))


def test_validation_samples_nothing() -> None:
    state = torch.get_rng_state()
    evaluated = criterion(reward_weight=0.5).eval()
    loss, _, log = evaluated(Model(), SAMPLE)
    assert loss.item() == pytest.approx(criterion()(Model(), SAMPLE)[0].item())
    assert log["reward"] > 0 and "sampled_reward" not in log
    assert torch.equal(state, torch.get_rng_state())


def test_another_task_is_refused() -> None:
    with refused("needs --task extractive_summarization."):
        ExtractiveSummarizationCriterion(SimpleNamespace(), 1.0, 0.0, 1, 1.0, None)
