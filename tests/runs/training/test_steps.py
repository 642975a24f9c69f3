"""The order of a run's steps, and what is not done again."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.runs.training.arguments import Arguments
from pyramidions.runs.training.places import Places
from pyramidions.runs.training.plan import Plan
from pyramidions.runs.training.run import Run
from pyramidions.runs.training.state import State

STEPS = ("documents", "data", "training", "summaries", "scores", "export")
PLAN = Plan({"train": "papers.jsonl"}, {"train": 8, "test": 1, "valid": 1}, 8, 0, "summarizer", "asked", 60, 0, 16e9)


class Stopped(BaseException):
    """As an interrupt: no error."""


class Rehearsal(Run):
    """A run whose steps only make their files.

    It stops in the middle of the step `stops_in`.
    """

    taken: list[str]
    stops_in: str | None = None

    def steps(self) -> dict[str, tuple[Callable[[], None], Path]]:
        def step(name: str) -> Callable[[], None]:
            def take() -> None:
                self.taken.append(name)
                if name == self.stops_in:
                    raise Stopped
                (self.places.work / name).write_text("made")

            return take

        return {name: (step(name), self.places.work / name) for name in super().steps()}


def rehearse(folder: Path, stops_in: str | None = None) -> tuple[list[str], list[str]]:
    """Go on with a run; return the steps that were taken, and what it said."""
    places, said = Places.of(folder / "model"), list[str]()
    places.work.mkdir(exist_ok=True)
    arguments = Arguments("papers.jsonl")
    state = State.read(places.state) or State.new(places.state, arguments=asdict(arguments), inputs={}, plan=PLAN.facts)
    run = Rehearsal(arguments, Plan.read(state.facts["plan"]), places, state, said.append)
    run.taken, run.stops_in = [], stops_in
    try:
        run.go()
    except Stopped:
        assert stops_in
    return run.taken, said


@pytest.mark.parametrize("stop", STEPS)
def test_a_run_that_was_stopped_goes_on_with_the_same_step(tmp_path: Path, stop: str) -> None:
    place = STEPS.index(stop)
    assert rehearse(tmp_path, stops_in=stop)[0] == [*STEPS[: place + 1]]
    taken, said = rehearse(tmp_path)
    assert taken == [*STEPS[place:]]
    assert said[:place] == [f"{number} of 6: {name}, done before" for number, name in enumerate(STEPS[:place], 1)]


def test_a_run_that_is_finished_does_nothing_more(tmp_path: Path) -> None:
    rehearse(tmp_path)
    assert rehearse(tmp_path)[0] == []


@pytest.mark.parametrize("lost", STEPS)
def test_what_was_deleted_is_made_again_with_all_that_came_from_it(tmp_path: Path, lost: str) -> None:
    rehearse(tmp_path)
    (tmp_path / "model.work" / lost).unlink()
    assert rehearse(tmp_path, stops_in=lost)[0] == [lost]
    # Also if it is stopped before the later ones are made.
    assert rehearse(tmp_path)[0] == [*STEPS[STEPS.index(lost) :]]


def test_without_a_split_to_hold_out_nothing_is_divided(tmp_path: Path) -> None:
    places = Places.of(tmp_path / "model")
    plan = Plan.read({**PLAN.facts, "held_out": {}})
    state = State(places.state, {"done": {}})
    assert list(Run(Arguments("papers"), plan, places, state, print).steps()) == list(STEPS[1:])


@for_each("content", ["", "{", "[]", '{"format": 1}', '{"format": 1, "arguments": 1, "inputs": {}}'])
def test_a_damaged_state_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(UserError, match="must be as written by `pyramidions train`; --overwrite begins anew"):
        State.read(path)


def test_the_state_of_another_version_is_refused(tmp_path: Path) -> None:
    State.new(tmp_path / "run.json", arguments={}, inputs={}, plan={}).note(format=2)
    with pytest.raises(UserError, match="is of another version of pyramidions"):
        State.read(tmp_path / "run.json")
