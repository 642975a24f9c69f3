from math import nan
from typing import Any

from omegaconf import OmegaConf
from tables import for_each

from pyramidions.plugin.tasks.training_run import StoppingRule


def rule(patience: int, maximize: bool = True) -> StoppingRule:
    run = OmegaConf.create(
        {
            "checkpoint": {"best_checkpoint_metric": "rouge2", "maximize_best_checkpoint_metric": maximize},
            "optimization": {"stop_min_lr": -1.0},
        }
    )
    return StoppingRule(patience, run)


def validated(stopping: StoppingRule, *scores: float) -> bool:
    """Whether the run has ended after these scores."""
    for score in scores:
        stopping.validated(score)
    return bool(stopping.run.optimization.stop_min_lr > 0)


@for_each(
    ("scores", "ended"),
    [
        *[((3, 2), False), ((3, 2, 1), True), ((3, 2, 4, 3), False), ((3, 3, 3), True), ((1, 2, 3, 4), False)],
        *[((nan, nan, nan), True), ((nan, 1, 2, 3), False), ((nan, 2, 1, nan), True)],
    ],
)
def test_a_run_ends_after_so_many_validations_without_progress(scores: tuple[float, ...], ended: bool) -> None:
    assert validated(rule(2), *scores) is ended


def test_where_less_is_better_less_is_progress() -> None:
    assert not validated(rule(2, maximize=False), 4, 3, 2, 1)
    assert validated(rule(2, maximize=False), 1, 2, 3)


def test_patience_zero_never_ends_a_run() -> None:
    assert not validated(rule(0), *[1] * 50)


def test_the_count_goes_on_after_a_restart() -> None:
    before, after = rule(3), rule(3)
    assert not validated(before, 5, 4)
    after.load_state_dict(before.state_dict())
    assert not validated(after, 4.5)
    assert validated(after, 4.9)


def test_a_run_that_had_ended_ends_at_once_when_it_is_restarted() -> None:
    before, after = rule(1), rule(1)
    assert validated(before, 5, 4)
    after.load_state_dict(before.state_dict())
    assert validated(after)


def test_what_travels_in_the_checkpoint_is_plain_numbers() -> None:
    stopping = rule(3)
    validated(stopping, 5, 4)
    state: dict[str, Any] = stopping.state_dict()
    assert state == {"best": 5.0, "without_progress": 1}
