"""Which validations count."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from pyramidions.base.errors import UserError
from pyramidions.plugin.tasks.training_run import TrainingRun


class Epoch:
    def __init__(self, at_end: bool) -> None:
        self.at_end = at_end

    def end_of_epoch(self) -> bool:
        return self.at_end


@pytest.fixture
def training(tmp_path: Path) -> TrainingRun:
    checkpoint = {"best_checkpoint_metric": "rouge2", "maximize_best_checkpoint_metric": True}
    folder = {"save_dir": str(tmp_path), "no_last_checkpoints": False}
    run = {
        "checkpoint": {**checkpoint, **folder},
        "dataset": {"disable_validation": False},
        "optimization": {"stop_min_lr": -1.0},
    }
    return TrainingRun(OmegaConf.create(run), patience=1)


def test_of_several_subsets_the_first_counts(training: TrainingRun) -> None:
    training.epoch = Epoch(at_end=True)
    for update, scores in ((6, (5, 1)), (12, (6, 1)), (18, (7, 1))):
        for score in scores:
            training.validated({"rouge2": score, "num_updates": update})
    assert training.stopping.state_dict() == {"best": 7.0, "without_progress": 0}


def test_validations_in_mid_epoch_do_not_count(training: TrainingRun) -> None:
    training.epoch = Epoch(at_end=False)
    for update, score in ((4, 3), (8, 2), (12, 1)):
        training.validated({"rouge2": score, "num_updates": update})
    assert training.stopping.state_dict() == {"best": None, "without_progress": 0}
    assert training.run.optimization.stop_min_lr == -1


class Criterion:
    conditional_metrics = ("sharpness_",)
    training_metrics = ("sampled_reward",)


def test_an_unknown_best_metric_is_refused_at_the_first_update(training: TrainingRun) -> None:
    with pytest.raises(UserError) as error:
        training.logged(["ppl", "loss", "rouge1", "wps", "_loss_sum", "sampled_reward"], Criterion())
    assert str(error.value) == "--best-checkpoint-metric must be one of loss, ppl, rouge1, but is 'rouge2'."
    training.logged(["loss", "rouge2"], Criterion())
    # Later updates may log less.
    training.logged(["loss"], Criterion())


def test_a_metric_of_training_alone_is_refused_at_the_first_update(training: TrainingRun) -> None:
    training.run.checkpoint.best_checkpoint_metric = "sampled_reward"
    with pytest.raises(UserError, match=r"must be one of loss, but is 'sampled_reward'\.$"):
        training.logged(["loss", "sampled_reward"], Criterion())


@pytest.mark.parametrize(("metric", "criterion"), [("sharpness_2", Criterion()), ("rouge2", object())])
def test_a_metric_that_the_first_update_may_lack_is_checked_at_validation(
    training: TrainingRun, metric: str, criterion: object
) -> None:
    training.run.checkpoint.best_checkpoint_metric = metric
    training.epoch = Epoch(at_end=True)
    training.logged(["loss"], criterion)
    training.validated({"loss": 1.0, metric: 2.0, "num_updates": 6})
    with pytest.raises(UserError, match=f"must be one of loss, but is '{metric}'"):
        training.validated({"loss": 1.0, "wps": 3.0, "num_updates": 12})
