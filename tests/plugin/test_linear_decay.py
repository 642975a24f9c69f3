"""A learning rate that falls to 0 when updates or hours are over."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from omegaconf import OmegaConf

from pyramidions.base.errors import UserError
from pyramidions.plugin import linear_decay
from pyramidions.plugin.linear_decay import LinearDecay


class Clock:
    """Stands in for the time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hours = 5.0
        monkeypatch.setattr(linear_decay.time, "monotonic", lambda: 3600 * self.hours)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def schedule(**options: Any) -> LinearDecay:
    adam = OmegaConf.structured(FairseqAdamConfig(lr=[1.0], tpu=False, adam_betas="(0.9, 0.98)"))
    optimizer = FairseqAdam(adam, [torch.nn.Parameter(torch.zeros(1))])
    given = {"lr": [8.0], "warmup_updates": 0, "max_update": 0, "stop_time_hours": 0} | options
    return LinearDecay(SimpleNamespace(**given), optimizer)


def test_the_rate_rises_to_its_peak_and_falls_to_zero_at_the_last_update() -> None:
    rates = schedule(warmup_updates=4, max_update=12)
    assert [rates.step_update(n) for n in range(13)] == [2, 4, 6, 8, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert rates.step_update(13) == 0


def test_the_rate_falls_by_the_hours_where_they_end_the_run(clock: Clock) -> None:
    rates = schedule(max_update=1000, stop_time_hours=4)
    assert rates.step_update(0) == 8
    clock.hours += 3
    assert rates.step_update(10) == 2
    # Of updates less is left.
    assert rates.step_update(875) == 1
    clock.hours += 3
    assert rates.step_update(876) == 0


def test_a_resumed_run_counts_the_hours_before_it_was_stopped(clock: Clock) -> None:
    stopped = schedule(stop_time_hours=4)
    clock.hours += 1
    state = stopped.state_dict()
    clock.hours += 100
    resumed = schedule(stop_time_hours=4)
    resumed.load_state_dict(state)
    clock.hours += 1
    assert resumed.step_update(7) == 4


def test_a_run_resumed_from_another_schedule_counts_from_now(clock: Clock) -> None:
    rates = schedule(stop_time_hours=4)
    rates.load_state_dict({"best": None})
    assert rates.step_update(5) == 8


def test_a_run_without_an_end_is_refused() -> None:
    with pytest.raises(UserError, match="needs the end of the run: --max-update or --stop-time-hours"):
        schedule()


def test_a_run_that_ends_within_its_warm_up_is_refused() -> None:
    with pytest.raises(UserError, match=r"--warmup-updates must be below --max-update \(10\), but is 10"):
        schedule(max_update=10, warmup_updates=10)


def test_several_rates_are_refused() -> None:
    with pytest.raises(UserError, match=r"--lr must be one learning rate .* but is \[1.0, 2.0\]"):
        schedule(lr=[1.0, 2.0], max_update=3)
