"""Timings as plain values for a JSON file."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pyramidions.environment import commit, hardware, versions
from pyramidions.measure.timing.plan import Plan
from pyramidions.measure.timing.stopwatch import Timed
from pyramidions.models.experiment import Experiment


def report(
    experiments: Sequence[Experiment], plan: Plan, results: list[dict[str, Timed]], overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the timings, with the plan, the code and the machine.

    Args:
        experiments: the models.
        plan: how they were timed.
        results: what `time_models` returned.
        overrides: with which the experiments were read.
    """
    return {
        "overrides": list(overrides),
        "commit": commit(),
        "versions": versions(),
        "hardware": hardware(plan.device),
        **asdict(plan),
        "configs": [
            {
                "config": experiment.name,
                "source_tokens": experiment.max_source_positions,
                "target_tokens": plan.target_tokens or experiment.max_target_positions,
                "beam": experiment.model.decoding_beam,
                **{phase: timed.as_json(results[0][phase]) for phase, timed in result.items()},
            }
            for experiment, result in zip(experiments, results, strict=True)
        ],
    }
