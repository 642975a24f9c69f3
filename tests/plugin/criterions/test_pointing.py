"""Losses of a pointer network over sentences, by hand, and its training."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from kinds_of_summarizers import model_of
from omegaconf import OmegaConf
from refusals import refused
from torch import Tensor

from pyramidions.data.folder import DataFolder
from pyramidions.inference import export_model
from pyramidions.models import EXTRACTOR_PRESETS
from pyramidions.nn.selector import PointerSelector, Steps
from pyramidions.plugin.criterions.extractive_summarization import ExtractiveSummarizationCriterion
from pyramidions.plugin.criterions.pointing import (
    SentenceRewards,
    actor_critic,
    follow_labels,
    returns,
    set_cross_entropy,
)
from pyramidions.plugin.models.pyramidion_extractor import PyramidionExtractor, PyramidionExtractorConfig
from pyramidions.plugin.tasks.config import ExtractiveSummarizationConfig
from pyramidions.plugin.tasks.extractive_summarization import ExtractiveSummarizationTask

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


# Training a model that selects sentence by sentence: its losses, its rewriter, and what it refuses.


SMALL: dict[str, Any] = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 2, "max_source_positions": 256}


class Trained:
    """A small model with its task and a batch of three documents, the last of headings alone."""

    def __init__(self, data: DataFolder, name: str = "extractor_pointer") -> None:
        self.task = ExtractiveSummarizationTask(
            ExtractiveSummarizationConfig(data=str(data.path), max_source_positions=256)
        )
        config = OmegaConf.structured(PyramidionExtractorConfig(**{**EXTRACTOR_PRESETS[name], **SMALL}))
        config._name = name
        torch.manual_seed(0)
        self.model = PyramidionExtractor.build_model(config, self.task)
        self.task.points = self.model.points
        self.task.load_dataset("valid")
        dataset = self.task.dataset("valid")
        self.batch: dict[str, Any] = dataset.collater([dataset[number] for number in range(3)])
        self.batch["labels"][2] = 0

    def criterion(self, reward_weight: float = 0.0, **options: Any) -> ExtractiveSummarizationCriterion:
        given = {"positive_weight": 1.0, "reward_samples": None, "reward_rouge2": None, "rewriter": None, **options}
        made = ExtractiveSummarizationCriterion(self.task, reward_weight=reward_weight, **given)
        made.train()
        return made


@pytest.fixture(scope="module")
def trained(labelled_data: DataFolder) -> Trained:
    return Trained(labelled_data)


@pytest.mark.parametrize("reward_weight", [0.0, 0.5])
def test_every_weight_learns_and_headings_do_not_count(reward_weight: float, trained: Trained) -> None:
    trained.model.zero_grad()
    torch.manual_seed(0)
    loss, documents, log = trained.criterion(reward_weight)(trained.model, trained.batch)
    loss.backward()
    assert documents == 2 and loss.isfinite() and (log.get("sampled_reward", 1) > 0)
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in trained.model.parameters())


def test_validation_samples_nothing(trained: Trained) -> None:
    criterion = trained.criterion(1.0).eval()
    first, _, log = criterion(trained.model.eval(), trained.batch)
    trained.model.train()
    assert "sampled_reward" not in log and log["cross_entropy"] == first > 0


def test_what_is_selected_is_rewarded_as_it_is_rewritten(trained: Trained, tmp_path: Path) -> None:
    rewriter = tmp_path / "rewriter"
    export_model(model_of("vanilla"), rewriter, "# A model\n")
    found = []
    for options in ({}, {"rewriter": str(rewriter)}):
        torch.manual_seed(0)
        _, _, log = trained.criterion(1.0, **options)(trained.model, trained.batch)
        found.append(float(log["sampled_reward"]))
    # A model that was never trained writes other words than the summary holds.
    assert found[0] > found[1] >= 0


def test_a_unit_that_truncation_left_nothing_of_is_never_selected(trained: Trained) -> None:
    batch = {**trained.batch, "labels": trained.batch["labels"].clone()}
    tokens = trained.batch["net_input"]["src_tokens"].clone()
    tokens[0, -1] = trained.task.preprocessing.need_tokenizer().marker_id
    units = 1 + int((tokens[:, 1:] == tokens[0, -1]).sum(dim=1).max())
    batch["labels"] = torch.ones(3, units, dtype=batch["labels"].dtype)
    batch["net_input"] = {**trained.batch["net_input"], "src_tokens": tokens}
    for seed in range(8):
        torch.manual_seed(seed)
        loss, _, _ = trained.criterion(1.0)(trained.model, batch)
        assert loss.isfinite()
    scores = trained.model(**batch["net_input"], allowed=torch.ones(3, units, dtype=torch.bool))
    assert scores.shape == (3, units)


def test_options_of_other_models_are_refused(trained: Trained, tmp_path: Path) -> None:
    for options in ({"reward_samples": 4}, {"reward_rouge2": 1.0}, {"positive_weight": 2.0}, {"rewriter": "x"}):
        with refused(f"--{next(iter(options)).replace('_', '-')} is "):
            trained.criterion(**options)
    export_model(model_of("vanilla", queries=True), tmp_path / "rewriter", "# A model\n")
    with refused("--rewriter must answer no queries"):
        trained.criterion(1.0, rewriter=str(tmp_path / "rewriter"))


def test_pointers_are_no_ensemble(trained: Trained, labelled_data: DataFolder) -> None:
    others = Trained(labelled_data, "extractor").model
    generator = trained.task.validation_generator(None)
    for models in ([trained.model, others], [others, trained.model]):
        with refused("--path must name one model with the selector pointer"):
            generator.generate(models, trained.batch)
    (first, *_) = generator.generate([trained.model], trained.batch)
    assert len(first[0]["tokens"]) > 1


def test_a_checkpoint_of_an_older_release_has_no_selector(trained: Trained) -> None:
    task = ExtractiveSummarizationTask(trained.task.cfg)
    config = vars(PyramidionExtractorConfig(**{**EXTRACTOR_PRESETS["extractor"], **SMALL}))
    older = OmegaConf.create({name: value for name, value in config.items() if name != "selector"})
    older._name = "pyramidion_extractor"
    assert not task.build_model(older).points and not task.points
