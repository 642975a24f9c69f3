"""Harms commands, one try after the other, and keeps what came out, so that an interrupted campaign goes on."""

import json
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from fault_injection import FILLER, SMALL_DISK, STRUCK
from fault_subjects import Ran, Subject, run, start

from pyramidions.files.atomic import atomic_folder, write_file

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
    """Return a random moment while a command works, in seconds from its start or from its first line.

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


_KEPT = (".damaged", ".txt.partial")  # named where they are put aside, and left for the user to look at
DISK = "12m"  # of a mounted disk; half a dozen checkpoints fit
RUNS = 8  # of a command that ended before it was killed; each is killed earlier than the one before
EARLIER = 0.6  # of the seconds before
Wrong = tuple[str, str] | None  # kind and words of what did not hold


class Campaign:
    """Harms commands in a folder, and keeps there what came out.

    Args:
        folder: for all that is made. What it holds of an earlier campaign is not done again.
        seed: of the moments of kills.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._seed = seed
        self._references, self._places, self._outcomes = (
            folder / name for name in ("references", "places", "tries.json")
        )
        self._tries: dict[str, Try] = {}
        self._failing: dict[str, str] = {}  # commands that fail by themselves
        if self._outcomes.exists():
            found = json.loads(self._outcomes.read_text())
            self._tries = {key: Try(**each) for key, each in found.items()}
        self._references.mkdir(parents=True, exist_ok=True)
        _clear(self._places)

    def tries(self, planned: Sequence[Planned]) -> list[Try]:
        """Make the tries that are not made yet; return all."""
        left = [each for each in planned if each.key not in self._tries]
        if len(left) < len(planned):
            print(f"{len(planned) - len(left)} of {len(planned)} tries are done; going on.", flush=True)
        for number, each in enumerate(left):
            print(f"{len(left) - number} left: {each.key} ", end="", flush=True)
            made = self._try(each)
            print("held" if made.wrong is None else f"\n  {made.kind}: {made.wrong}", flush=True)
            self._tries[each.key] = made
            # A command that fails by itself is tried again in the next sitting.
            kept = {key: asdict(done) for key, done in self._tries.items() if done.command not in self._failing}
            write_file(self._outcomes, (json.dumps(kept, indent=1) + "\n").encode())
        return [self._tries[each.key] for each in planned]

    def _try(self, each: Planned) -> Try:
        subject, made, disk, runs = each.subject, each, None, 1
        try:
            reference, began, took = self._undisturbed(subject)
        except RuntimeError as error:
            self._failing[subject.name] = str(error)
            return Try(subject.name, subject.group, each.harm, "", NOT_TRIED, str(error))
        if each.way == RANDOM:
            harm, wrong, runs = self._killed(each, reference, began, took)
        elif each.way == AGAIN:
            harm, wrong = each.harm, self._started_again(subject, reference)
        elif each.way == TWICE:
            harm, wrong = each.harm, self._two_at_once(subject, reference)
        else:
            for made in alternatives(each):
                reached, wrong, disk = self._struck(made, reference)
                if reached:
                    break
            harm = made.harm
        where = "" if each.way in (RANDOM, AGAIN, TWICE) else "{} of {}, no. {}".format(*made.where)
        kind, words = wrong or (None, None)
        words = words and words.replace(str(self._places), "…")
        return Try(subject.name, subject.group, harm, where, kind, words, disk, runs)

    def _undisturbed(self, subject: Subject) -> tuple[Path, float, float]:
        """Return what an undisturbed run made, when it began to write, and how long it took.

        Raises:
            RuntimeError: it fails, or does not make what it should.
        """
        kept = self._references / subject.name
        if subject.name in self._failing:
            raise RuntimeError(self._failing[subject.name])
        if not kept.exists():
            with atomic_folder(kept) as partial:
                (partial / "made").mkdir()
                done = run(subject.command(partial / "made"), writes=partial / "made", begins=subject.begins)
                if wrong := _fails(done):
                    print(f"\n{done.output}")
                    raise RuntimeError(f"without any harm, it {wrong}")
                if missing := [name for name in subject.made if not (partial / "made" / name).exists()]:
                    raise RuntimeError(f"without any harm, it does not make {', '.join(missing)}")
                times = {"began": done.took if done.began is None else done.began, "took": done.took}
                (partial / "times.json").write_text(json.dumps(times))
        times = json.loads((kept / "times.json").read_text())
        return kept / "made", times["began"], times["took"]

    def _killed(self, each: Planned, reference: Path, began: float, took: float) -> tuple[str, Wrong, int]:
        """Kill a command at a random moment; one that has ended before is killed earlier."""
        subject, seconds = each.subject, moment(each, self._seed, began, took)
        for number in range(RUNS):
            with self._place() as place:
                done = run(subject.command(place), begins=subject.begins, kill_after=seconds * EARLIER**number)
                if done.killed:
                    return each.harm, self._next_run(subject, place, reference), number + 1
        return "ended before it was killed", (NOT_TRIED, f"it ended {RUNS} times before it was killed"), RUNS

    def _struck(self, each: Planned, reference: Path) -> tuple[bool, Wrong, str | None]:
        """Harm a command at a chosen call; return whether it came to it, what was wrong, and which disk was full."""
        subject, fault = each.subject, each.way
        injection = str(Path(__file__).with_name("fault_injection.py"))
        with self._place(small="full" in fault) as place:
            disk = None
            if "full" in fault:
                disk = (
                    f"tmpfs of {DISK}" if place.is_mount() else "a limit on the size of files in place of a full disk"
                )
            done = run(["python", injection, fault, *each.where[:3], *subject.command(place)])
            if STRUCK not in done.output:
                return False, (NOT_TRIED, f"ended with status {done.status}: the call was not reached"), disk
            if fault in ("full", "nearly-full") and done.status == 0:
                return True, (HALF, "ended with status 0, as if nothing were wrong"), disk
            if "full" in fault and done.status and (wrong := no_sentence(subject.command(place), done.output)):
                return True, (STUCK, f"ends {wrong}"), disk
            (place / FILLER).unlink(missing_ok=True)
            return True, self._next_run(subject, place, reference), disk

    def _two_at_once(self, subject: Subject, reference: Path) -> Wrong:
        with self._place() as place:
            both = [start(subject.command(place)) for _ in range(2)]
            outputs = [process.communicate()[0] for process in both]
            statuses = sorted((process.returncode for process in both), key=abs)
            if statuses[0] != 0:
                return STUCK, f"neither succeeds ({statuses[0]} and {statuses[1]})"
            for process, output in zip(both, outputs, strict=True):
                if process.returncode and (wrong := no_sentence(subject.command(place), output)):
                    return STUCK, f"one ends {wrong}"
            return self._next_run(subject, place, reference)

    def _next_run(self, subject: Subject, place: Path, reference: Path) -> Wrong:
        """Look at what a harmed run left, run it again, and compare."""
        for name in subject.made:
            if wrong := subject.whole(place / name, reference / name):
                return HALF, wrong
        if done := _fails(run(subject.command(place))):
            return STUCK, f"the next run {done}"
        for name in subject.made:
            if wrong := subject.same(place / name, reference / name):
                return DIFFERS, wrong
        known = {path.relative_to(reference) for path in reference.rglob("*")}
        found = {path.relative_to(place) for path in place.rglob("*") if not path.name.endswith(_KEPT)}
        left = sorted(map(str, found - known))
        return (LEFT, f"{', '.join(left)} left behind") if left else None

    def _started_again(self, subject: Subject, reference: Path) -> Wrong:
        """Run a finished training again: nothing may change."""
        with self._place() as place:
            shutil.copytree(reference, place, dirs_exist_ok=True)
            before = _found(place)
            done = run(subject.command(place))
            after = _found(place)
            if changed := sorted(name for name in {*before, *after} if before.get(name) != after.get(name)):
                return DIFFERS, f"changed {', '.join(changed)}"
            return (STUCK, f"it {wrong}") if (wrong := _fails(done)) else None

    @contextmanager
    def _place(self, small: bool = False) -> Iterator[Path]:
        """Yield a new folder, on a small disk if asked for and where one can be mounted."""
        self._places.mkdir(exist_ok=True)
        place = Path(tempfile.mkdtemp(dir=self._places))
        if small:
            _mount(place)
        try:
            yield place
        finally:
            _clear(place)


def _fails(done: Ran) -> str | None:
    """Say how a command ended that should have succeeded."""
    last = done.output.strip().splitlines()[-1:] or ["nothing said"]
    return f"ends with status {done.status}: {last[0][:160]}" if done.status else None


def no_sentence(command: list[str], output: str) -> str | None:
    """Say how a command of ours ended where it is not in one sentence; fairseq's own show tracebacks."""
    lines = output.strip().splitlines() or ["nothing said"]
    if command[0] != "pyramidions" or (lines[-1].startswith("Error: ") and "Traceback" not in output):
        return None
    return f"without a sentence: {lines[-1][:160]}"


def _found(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def _clear(folder: Path) -> None:
    """Remove a folder, disks that are mounted there included; an interrupted campaign may have left some."""
    for path in (folder, *(folder.iterdir() if folder.exists() else ())):
        if path.is_mount():
            subprocess.run(["umount", path], check=True)
    shutil.rmtree(folder, ignore_errors=True)


def _mount(place: Path) -> None:
    """Mount a small disk where that is allowed; elsewhere `fault_injection` limits the size of files."""
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", place], capture_output=True)
    except FileNotFoundError:
        return
    if done.returncode == 0 and os.statvfs(place).f_blocks * os.statvfs(place).f_frsize > SMALL_DISK:
        # It is not the size that was asked for.
        subprocess.run(["umount", place], check=True)
