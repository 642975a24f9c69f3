"""Models take turns, so that whatever slows the machine for a while slows all of them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any

from pyramidions.base.environment import commit, hardware, versions
from pyramidions.models.experiment import Experiment
from pyramidions.runs.measure.timing.contender import Contender
from pyramidions.runs.measure.timing.plan import Plan
from pyramidions.runs.measure.timing.stopwatch import Timed, naming_what_took_memory

#: takes the name of what is timed and how often decoders will be called; gives what is called after each of the calls
Watch = Callable[[str, int], AbstractContextManager[Callable[[], object]]]


def time_models(
    experiments: Sequence[Experiment],
    plan: Plan,
    watch: Watch = lambda phase, calls: nullcontext(lambda: None),
    forecast: Callable[[float], object] | None = None,
) -> list[dict[str, Timed]]:
    """Time models that take turns.

    A training step is forward, cross entropy over all positions, backward, clipping and Adam, with dropout as
    configured; decoding is encoder and beam search with the config's beam and length penalty, of exactly as many
    tokens as steps. All documents are as long as the config allows. All models stay in memory throughout.

    Args:
        experiments: the models.
        plan: what is timed.
        watch: is told of progress.
        forecast: takes an estimate of the seconds that all turns will take, before the first; None for no estimate.
            Small turns on the CPU give it.

    Returns:
        Of each model "train_step" and "decode_N" for each number of tokens N.

    Raises:
        UserError: a config that breaks a rule, or memory that ran out.
    """
    with naming_what_took_memory("building the models and their synthetic texts"):
        contenders = [Contender(experiment, plan) for experiment in experiments]
    if forecast is not None:
        forecast(plan.turns * sum(contender.seconds_a_turn() for contender in contenders))
    results: list[dict[str, Timed]] = [{"train_step": Timed([], None)} for _ in contenders]
    # Training comes last: it changes the weights.
    for tokens in (*plan.decode_tokens, None):
        phase = "train_step" if tokens is None else f"decode_{tokens}"
        calls = plan.turns * len(contenders) * (plan.pieces if tokens is None else tokens)
        with watch(phase, calls) as tick:
            turns = [_turn(contenders, tokens, tick) for _ in range(plan.turns)][plan.warmup :]
        for result, taken in zip(results, zip(*turns, strict=True), strict=True):
            seconds, peaks = zip(*taken, strict=True)
            result[phase] = Timed(list(seconds), None if None in peaks else max(peaks))
    return results


def _turn(
    contenders: list[Contender], tokens: int | None, tick: Callable[[], object]
) -> list[tuple[float, int | None]]:
    """Return the seconds of each, and the peak of memory without what lies there for the others."""
    taken = []
    for contender in contenders:
        others = sum(other.bytes_between_turns() for other in contenders if other is not contender)
        seconds, peak = contender.take_turn(tokens, tick)
        taken.append((seconds, None if peak is None else peak - others))
    return taken


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
