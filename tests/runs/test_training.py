"""The steps of `pyramidions train`."""

from pathlib import Path

from pyramidions.runs.arguments import Arguments
from pyramidions.runs.network_run import NetworkRun
from pyramidions.runs.places import Places
from pyramidions.runs.plan import Plan
from pyramidions.runs.steps import State

PLAN = {"given": {"train": "papers"}, "documents": 8, "skipped": 0, "kind": "summarizer", "why": "asked"}


def test_without_a_split_to_hold_out_nothing_is_divided() -> None:
    def steps(**held_out: int) -> list[str]:
        places = Places(Path("model"))
        plan = Plan(**PLAN, held_out=held_out, vocab_size=60, gpus=0, memory=16e9)
        training = NetworkRun(Arguments("papers"), plan, places, State(places.state, {"done": {}}), print)
        return [step.name for step in training.steps()]

    rest = ["data", "training", "summaries", "scores", "export"]
    assert steps() == rest and steps(train=8, test=1, valid=1) == ["documents", *rest]
