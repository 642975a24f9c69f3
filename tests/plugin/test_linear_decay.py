"""A learning rate that falls to 0 when updates or hours are over."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from omegaconf import OmegaConf
from refusals import refused

from pyramidions.plugin import linear_decay
from pyramidions.plugin.linear_decay import LinearDecay


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand in for the time."""
    clock = SimpleNamespace(hours=5.0)
    monkeypatch.setattr(linear_decay.time, "monotonic", lambda: 3600 * clock.hours)
    return clock


def schedule(**options: Any) -> LinearDecay:
    adam = OmegaConf.structured(FairseqAdamConfig(lr=[1.0], tpu=False, adam_betas="(0.9, 0.98)"))
    optimizer = FairseqAdam(adam, [torch.nn.Parameter(torch.zeros(1))])
    given = {"lr": [8.0], "warmup_updates": 0, "max_update": 0, "stop_time_hours": 0} | options
    return LinearDecay(SimpleNamespace(**given), optimizer)


def test_the_rate_rises_to_its_peak_and_falls_to_zero_at_the_last_update() -> None:
    rates = schedule(warmup_updates=4, max_update=12)
    assert [rates.step_update(n) for n in range(13)] == [2, 4, 6, 8, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert rates.step_update(13) == 0


def test_the_rate_falls_by_the_hours_where_they_end_the_run(clock: SimpleNamespace) -> None:
    rates = schedule(max_update=1000, stop_time_hours=4)
    assert rates.step_update(0) == 8
    clock.hours += 3
    assert rates.step_update(10) == 2
    # Of updates less is left.
    assert rates.step_update(875) == 1
    clock.hours += 3
    assert rates.step_update(876) == 0


def test_a_resumed_run_counts_the_hours_before_it_was_stopped(clock: SimpleNamespace) -> None:
    stopped = schedule(stop_time_hours=4)
    clock.hours += 1
    state = stopped.state_dict()
    clock.hours += 100
    resumed, other = schedule(stop_time_hours=4), schedule(stop_time_hours=4)
    resumed.load_state_dict(state)
    # Another scheduler counts none.
    other.load_state_dict({"best": None})
    assert other.step_update(5) == 8
    clock.hours += 1
    assert resumed.step_update(7) == 4


def test_a_run_without_an_end_or_with_several_rates_is_refused() -> None:
    for options, told in (
        ({}, "needs the end of the run: --max-update or --stop-time-hours"),
        ({"max_update": 10, "warmup_updates": 10}, "--warmup-updates must be below --max-update (10), but is 10"),
        ({"lr": [1.0, 2.0], "max_update": 3}, "--lr must be one learning rate"),
    ):
        with refused(told):
            schedule(**options)
