"""The tries of the campaign of faults: what is planned, when a kill comes, and what came out."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from fault_subjects import Subject

#: what may not hold
HALF, STUCK, DIFFERS, LEFT, NOT_TRIED = (
    "a part that looks whole",
    "neither resumed nor ended in a sentence",
    "a silent difference",
    "something left behind",
    "could not be tried",
)
RANDOM, TWICE, AGAIN = "random", "twice", "again"
_HARMS = {
    RANDOM: "killed at a random moment",
    "kill": "killed at a chosen call",
    "kill-in-copy": "killed while copying",
    "full": "disk full",
    "nearly-full": "disk full in mid-file",
    "full-a-second": "disk full for a second",
    TWICE: "two at once",
    AGAIN: "started again after its end",
}


@dataclass(frozen=True)
class Planned:
    """A try to come.

    Attributes:
        subject: what is harmed.
        way: RANDOM, TWICE, AGAIN, or a fault of `fault_injection`.
        where: event, pattern and number of the call at which it is harmed, or the number of the repeat.
    """

    subject: Subject
    way: str
    where: tuple[str, ...]

    @property
    def key(self) -> str:
        """The name of the try, which also decides what is left to chance."""
        return " ".join((self.subject.name, self.way, *self.where))

    @property
    def harm(self) -> str:
        """The harm in words."""
        return _HARMS[self.way]


@dataclass(frozen=True)
class Try:
    """One harm, and whether all held.

    Attributes:
        command: the name of the subject.
        group: of the subject.
        harm: what was done to it.
        where: at which call; empty where that is left to chance.
        kind: of what did not hold: HALF, STUCK, DIFFERS, LEFT or NOT_TRIED; None if all held.
        wrong: what did not hold, in words.
        disk: what was full.
        runs: how often the command ran before it could be killed.
    """

    command: str
    group: str
    harm: str
    where: str = ""
    kind: str | None = None
    wrong: str | None = None
    disk: str | None = None
    runs: int = 1


def plan(subjects: Sequence[Subject], repeats: int, seed: int) -> list[Planned]:
    """Return all tries.

    Args:
        subjects: what is harmed.
        repeats: kills by chance of each: at a moment, and every second one at one of the calls of `drawn`.
        seed: of what is left to chance.
    """
    made = []
    for subject in subjects:
        for number in range(repeats):
            if subject.drawn and number % 2:
                fault, *call = random.Random(f"{seed} {subject.name} {number}").choice(subject.drawn)
                made.append(Planned(subject, fault, (*map(str, call), f"repeat {number + 1}")))
            else:
                made.append(Planned(subject, RANDOM, (str(number + 1),)))
        made += [Planned(subject, fault, tuple(map(str, call))) for fault, *call in subject.calls]
        if subject.trains:
            made.append(Planned(subject, AGAIN, ()))
        if subject.twice:
            made.append(Planned(subject, TWICE, ()))
    return made


def alternatives(each: Planned) -> list[Planned]:
    """Return the tries that may stand for one: itself, then, if its call was drawn, the other calls.

    A command may never make the call that was drawn.
    """
    calls = [(fault, *map(str, call)) for fault, *call in each.subject.drawn]
    at = (each.way, *each.where[:3])
    if at not in calls:
        return [each]
    begin = calls.index(at)
    in_turn = (*calls[begin:], *calls[:begin])
    return [Planned(each.subject, fault, (*call, *each.where[3:])) for fault, *call in in_turn]


def moment(each: Planned, seed: int, began: float, took: float) -> float:
    """Return a random moment at which a command works, in seconds from its start or from the line by which it begins.

    Args:
        each: the try.
        seed: of the campaign.
        began: seconds until an undisturbed run began to write.
        took: seconds until its end.
    """
    share = random.Random(f"{seed} {each.key}").random()
    if each.subject.begins is not None:
        return share * (took - began)
    # Most of the time passes before it writes. Its last second counts in any case: some write at their end alone.
    earliest = min(began, max(took - 1, 0.0))
    return earliest + share * (took - earliest)
