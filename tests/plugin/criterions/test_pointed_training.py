"""Training a model that selects sentence by sentence: its losses, its rewriter, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest
import torch
from kinds_of_summarizers import model_of
from omegaconf import OmegaConf
from refusals import refused

from pyramidions.data.folder import DataFolder
from pyramidions.inference import export_model
from pyramidions.models import EXTRACTOR_PRESETS
from pyramidions.plugin.criterions.extractive_summarization import ExtractiveSummarizationCriterion
from pyramidions.plugin.models.pyramidion_extractor import PyramidionExtractor, PyramidionExtractorConfig
from pyramidions.plugin.tasks.config import ExtractiveSummarizationConfig
from pyramidions.plugin.tasks.extractive_summarization import ExtractiveSummarizationTask

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
