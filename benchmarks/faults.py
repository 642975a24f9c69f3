"""Kills, full disks and two processes on one folder: does anything get lost?

    python benchmarks/faults.py --out benchmarks/results/faults-cpu.json

Every try harms a command of ours or of fairseq's, runs the same command again without harm, and compares what stands
there at last with what an undisturbed run left: weights bit for bit, data folders, summaries and exports byte for byte.
In between, no name that a user asked for may hold a part of a file, and at last nothing else may be left but what was
put aside as damaged. A try that does not hold is told in a sentence.

`--repeats` says how often each command is killed at a random moment.

Where a small file system can be mounted (as root on Linux) the disk is really full. Elsewhere a limit on the size of
files stands in for it, and the result says so.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from fault_injection import FILLER, SMALL_DISK, STRUCK
from fault_subjects import Subject, run, subjects
from side_by_side import parser, record

_KEPT = (".damaged", ".txt.partial")  # named where they are put aside, and left for the user to look at
DISK = "12m"  # of a mounted disk; half a dozen checkpoints fit


@dataclass(frozen=True)
class Try:
    """One harm, and whether all held.

    Attributes:
        command: that was harmed.
        harm: what was done to it.
        where: at which call; empty where that is left to chance.
        wrong: what did not hold; None if all did.
    """

    command: str
    harm: str
    where: str
    wrong: str | None = None


_HARMS = {
    "kill": "killed at a chosen call",
    "kill-in-copy": "killed while copying",
    "full": "disk full",
    "nearly-full": "disk full in mid-file",
    "full-a-second": "disk full for a second",
}


def harmed(subject: Subject, folder: Path, fault: str, event: str, pattern: str, number: int) -> tuple[int, str]:
    """Run a subject's command with a fault at a call."""
    injection = str(Path(__file__).with_name("fault_injection.py"))
    return run(["python", injection, fault, event, pattern, str(number), *subject.command(folder)])


class Campaign:
    """Harms commands in a folder and counts what held.

    Args:
        folder: for all that is made.
        seed: of the moments of kills.
        kills: at random moments, of each command.
    """

    def __init__(self, folder: Path, seed: int, kills: int) -> None:
        self.folder = folder
        self.tries: list[Try] = []
        self.full_disks = "not tried"
        self._random = random.Random(seed)
        self._kills = kills

    def note(self, command: str, harm: str, wrong: str | None, where: str = "") -> None:
        """Count a try, and say what came out."""
        wrong = wrong and wrong.replace(str(self.folder), "…")
        self.tries.append(Try(command, harm, where, wrong))
        print(f"{command:16} {harm:26} {where:46} {'held' if wrong is None else wrong}", flush=True)

    def harm(self, subject: Subject) -> None:
        """Kill a command at random moments and at chosen calls, fill its disk, and start it twice at once."""
        reference = self.folder / f"{subject.name}-undisturbed"
        reference.mkdir()
        begin = time.monotonic()
        status, output = run(subject.command(reference))
        if status:
            sys.exit(f"{subject.name} fails without any harm:\n{output}")
        took = time.monotonic() - begin
        for _ in range(self._kills):
            moment = self._random.uniform(0, took)
            with self._place() as place:
                status, _ = run(subject.command(place), kill_after=moment)
                harm = "killed at a random moment" if status == -signal.SIGKILL else "ended before it was killed"
                self._again(subject, place, reference, harm)
        for fault, event, pattern, number in subject.calls:
            with self._place(small="full" in fault) as place:
                status, output = harmed(subject, place, fault, event, pattern, number)
                harm, where = _HARMS[fault], f"{event} of {pattern}, no. {number}"
                if STRUCK not in output:
                    self.note(subject.name, harm, f"ended with status {status}: the call was not reached", where)
                elif fault in ("full", "nearly-full") and status == 0:
                    self.note(subject.name, harm, "ended with status 0, as if nothing were wrong", where)
                elif "full" in fault and "Traceback" in output and not subject.name.startswith("fairseq"):
                    self.note(subject.name, harm, "shows a traceback", where)
                else:
                    (place / FILLER).unlink(missing_ok=True)
                    self._again(subject, place, reference, harm, where)

    def twice(self, subject: Subject) -> None:
        """Start a command twice at the same time on one folder."""
        reference = self.folder / f"{subject.name}-undisturbed"
        with self._place() as place:
            command = subject.command(place)
            program = [str(Path(sys.executable).parent / command[0]), *command[1:]]
            both = [
                subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(2)
            ]
            outputs = [process.communicate()[0] for process in both]
            statuses = sorted(process.returncode for process in both)
            if statuses[0] != 0:
                self.note(subject.name, "two at once", f"neither succeeds ({statuses})")
            elif any("Traceback" in output for output in outputs):
                self.note(subject.name, "two at once", "one shows a traceback")
            else:
                self._again(subject, place, reference, "two at once")

    def _again(self, subject: Subject, place: Path, reference: Path, harm: str, where: str = "") -> None:
        """Look at what a harmed run left, run it again, and compare."""
        wrong = subject.whole(place / subject.made)
        if wrong is None:
            status, output = run(subject.command(place))
            if status:
                last = output.strip().splitlines()[-1:] or ["nothing said"]
                wrong = f"the next run ends with status {status}: {last[0][:160]}"
            else:
                wrong = subject.same(place / subject.made, reference / subject.made)
        known = {path.relative_to(reference) for path in reference.rglob("*")}
        found = {path.relative_to(place) for path in place.rglob("*") if not path.name.endswith(_KEPT)}
        left = sorted(map(str, found - known))
        if wrong is None and left:
            wrong = f"{', '.join(left)} left behind"
        self.note(subject.name, harm, wrong, where)

    @contextmanager
    def _place(self, small: bool = False) -> Iterator[Path]:
        """Yield a new folder, on a small disk if asked for and where one can be mounted."""
        place = Path(tempfile.mkdtemp(dir=self.folder))
        mounted = small and _mount(place)
        if small:
            self.full_disks = f"tmpfs of {DISK}" if mounted else "a limit on the size of files in place of a full disk"
        try:
            yield place
        finally:
            if mounted:
                subprocess.run(["umount", place], check=True)
            shutil.rmtree(place)


def _mount(place: Path) -> bool:
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", place], capture_output=True)
    except FileNotFoundError:
        return False
    return done.returncode == 0 and os.statvfs(place).f_blocks * os.statvfs(place).f_frsize <= SMALL_DISK


def finished_twice(campaign: Campaign, training: Subject) -> None:
    """Run a finished training again: nothing may change."""
    folder = campaign.folder / f"{training.name}-undisturbed"
    made = folder / training.made

    def found() -> dict[str, tuple[int, bytes]]:
        return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in made.iterdir()}

    before = found()
    status, _ = run(training.command(folder))
    changed = [name for name, content in found().items() if before.get(name) != content]
    wrong = f"changed {', '.join(changed)}" if changed else None
    campaign.note(training.name, "started again after its end", wrong or (f"status {status}" if status else None))


def table(tries: list[Try]) -> str:
    """Return a Markdown table of how many tries held, by command and kind of harm."""
    kinds = Counter((each.command, each.harm) for each in tries)
    held = Counter((each.command, each.harm) for each in tries if each.wrong is None)
    lines = ["| command | harm | held | of |", "|---|---|---|---|"]
    lines += [f"| {command} | {harm} | {held[command, harm]} | {count} |" for (command, harm), count in kinds.items()]
    return "\n".join(lines)


def main() -> None:
    """Run the campaign."""
    made: argparse.ArgumentParser = parser(__doc__, "faults", devices=False)
    made.add_argument(
        "--only",
        nargs="+",
        metavar="COMMAND",
        help="such as fairseq-train or summarize (default: all)",
    )
    args = made.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        every = subjects(root)
        chosen = [subject for subject in every if args.only is None or subject.name in args.only]
        campaign = Campaign(root, args.seed, args.repeats)
        for subject in chosen:
            campaign.harm(subject)
            if subject.name == "fairseq-train":
                finished_twice(campaign, subject)
            elif subject.name != "fairseq-generate":
                campaign.twice(subject)
    held = sum(each.wrong is None for each in campaign.tries)
    print(f"\n{table(campaign.tries)}\n\n{held} of {len(campaign.tries)} held. Full disks: {campaign.full_disks}.")
    record(args, held=held, tries=[asdict(each) for each in campaign.tries], full_disks=campaign.full_disks)
    if args.check and held < len(campaign.tries):
        sys.exit(1)


if __name__ == "__main__":
    main()
