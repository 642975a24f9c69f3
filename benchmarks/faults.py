"""Kills, full disks and two processes on one folder: does anything get lost?

    python benchmarks/faults.py --out benchmarks/results/faults-cpu.json

Every try harms a command of ours or of fairseq's, runs the same command again without harm, and compares what stands
there at last with what an undisturbed run left: weights bit for bit, data folders, summaries and exports byte for byte.
In between, no name that a user asked for may hold a part of a file, and at last nothing hidden may be left. A try that
does not hold is told in a sentence.

Where a small file system can be mounted (as root on Linux) the disk is really full. Elsewhere a limit on the size of
files stands in for it, and the result says so.
"""

import argparse
import filecmp
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from fault_injection import FILLER, SMALL_DISK
from side_by_side import parser, record

from pyramidions.data.archive import is_whole

SAMPLE = Path(__file__).parents[1] / "data" / "sample"
PLUGIN = Path(__file__).parents[1] / "pyramidions"
DISK = "12m"  # of a mounted disk; half a dozen checkpoints fit
_TINY = [
    *("--embed-dim", "16", "--ffn-embed-dim", "32", "--num-heads", "2", "--encoder-layers", "3"),
    *("--decoder-layers", "1", "--self-attention-args", '{"block_size": 32}', "--pooling-lengths", "None,64,16"),
    *("--max-source-positions", "256", "--max-target-positions", "48"),
]
# Saves in mid-epoch and at the ends of epochs, the best one by validation.
_TRAINING = [
    *("--task", "long_document_summarization", "--arch", "deep_pyramidion", *_TINY, "--cpu"),
    *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr", "0.001", "--lr-scheduler", "fixed"),
    *("--batch-size", "4", "--max-update", "24", "--save-interval-updates", "4", "--keep-interval-updates", "2"),
    *("--keep-last-epochs", "2", "--num-workers", "0", "--log-format", "simple", "--seed", "1"),
]


@dataclass(frozen=True)
class Try:
    """One harm, and whether all held.

    Attributes:
        command: that was harmed.
        harm: what was done to it.
        wrong: what did not hold; None if all did.
    """

    command: str
    harm: str
    wrong: str | None = None


@dataclass(frozen=True)
class Subject:
    """A command that is harmed, and what it makes.

    Attributes:
        name: of the command.
        command: its words for a folder in which it is to work.
        made: the name, in this folder, of what it makes.
        same: says what differs between what two runs made, or None.
        whole: says what is damaged in what a harmed run left, or None.
        calls: audit event, pattern of a path and number of each call at which it is killed or its disk fills up.
    """

    name: str
    command: Callable[[Path], list[str]]
    made: str
    same: Callable[[Path, Path], str | None]
    whole: Callable[[Path], str | None]
    calls: tuple[tuple[str, str, str, int], ...]


def run(command: list[str], *, kill_after: float | None = None) -> tuple[int, str]:
    """Run a command; return its status and what it printed. A negative status is that of the signal that ended it."""
    program = [str(Path(sys.executable).parent / command[0]), *command[1:]]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    )
    try:
        output, _ = process.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return process.returncode, output


def harmed(subject: Subject, folder: Path, fault: str, event: str, pattern: str, number: int) -> tuple[int, str]:
    """Run a subject's command with a fault at a call."""
    injection = str(Path(__file__).with_name("fault_injection.py"))
    return run(["python", injection, fault, event, pattern, str(number), *subject.command(folder)])


# What is compared


def _same_weights(first: Path, second: Path) -> str | None:
    """Compare last and best checkpoint: weights, optimizer and where the data stood."""
    for name in ("checkpoint_last.pt", "checkpoint_best.pt"):
        one, other = (torch.load(path / name, weights_only=True) for path in (first, second))
        if not _equal(_lasting(one), _lasting(other)):
            return f"{name} differs from that of an undisturbed run"
    return None


def _lasting(state: dict[str, object]) -> object:
    iterator = state["extra_state"]["train_iterator"]  # type: ignore[index]
    return state["model"], state["last_optimizer_state"], iterator


def _equal(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.equal(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other


def _checkpoints_whole(folder: Path) -> str | None:
    """Say which checkpoint is damaged where no whole one is left beside it."""
    found = sorted(folder.glob("checkpoint*.pt")) if folder.exists() else []
    damaged = [path.name for path in found if not is_whole(path)]
    return f"none of {', '.join(damaged)} is whole" if damaged and len(damaged) == len(found) else None


def _all_checkpoints_whole(folder: Path) -> str | None:
    damaged = [path.name for path in sorted(folder.glob("checkpoint*.pt")) if not is_whole(path)]
    return f"{', '.join(damaged)}: damaged at the end" if damaged else None


def _same_folder(first: Path, second: Path) -> str | None:
    names = {path.name for path in first.iterdir()}
    if names != {path.name for path in second.iterdir()}:
        return "other files than an undisturbed run's"
    _, differing, missing = filecmp.cmpfiles(first, second, names, shallow=False)
    return f"{', '.join(differing + missing)} differ" if differing or missing else None


def _same_file(first: Path, second: Path) -> str | None:
    return None if filecmp.cmp(first, second, shallow=False) else f"{first.name} differs from an undisturbed run's"


def _absent_or_like(reference: Path, same: Callable[[Path, Path], str | None]) -> Callable[[Path], str | None]:
    """Return a check that what a harmed run left under its name is nothing or the whole."""
    return lambda path: same(path, reference) if path.exists() else None


# The campaign


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

    def note(self, command: str, harm: str, wrong: str | None) -> None:
        """Count a try, and say what came out."""
        self.tries.append(Try(command, harm, wrong))
        print(f"{command:20} {harm:62} {'held' if wrong is None else wrong}", flush=True)

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
                run(subject.command(place), kill_after=moment)
                self._again(subject, place, reference, "killed at a random moment")
        for fault, event, pattern, number in subject.calls:
            with self._place(small="full" in fault) as place:
                status, output = harmed(subject, place, fault, event, pattern, number)
                what = f"{fault} at {event} of {pattern}, no. {number}"
                expected = {
                    "kill": status == -9,
                    "kill-in-copy": status == -9,
                    "full": status > 0,
                    "nearly-full": status > 0,
                }.get(fault, True)
                if not expected:
                    self.note(subject.name, what, f"ended with status {status}: the call was not reached")
                    continue
                if "full" in fault and "Traceback" in output and not subject.name.startswith("fairseq"):
                    self.note(subject.name, what, "shows a traceback")
                    continue
                (place / FILLER).unlink(missing_ok=True)
                self._again(subject, place, reference, what)

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

    def _again(self, subject: Subject, place: Path, reference: Path, harm: str) -> None:
        """Look at what a harmed run left, run it again, and compare."""
        wrong = subject.whole(place / subject.made)
        if wrong is None:
            status, output = run(subject.command(place))
            if status:
                last = output.strip().splitlines()[-1:] or ["nothing said"]
                wrong = f"the next run ends with status {status}: {last[0][:160]}"
            else:
                wrong = subject.same(place / subject.made, reference / subject.made)
        left = sorted(path.name for path in place.iterdir() if path.name.startswith("."))
        if wrong is None and left:
            wrong = f"{', '.join(left)} left behind"
        self.note(subject.name, harm, wrong)

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


def subjects(root: Path) -> list[Subject]:
    """Make a small corpus and a trained model; return the commands that are harmed.

    Args:
        root: for the corpus, the data folder and the model.
    """
    corpus = root / "corpus"
    corpus.mkdir()
    import lzma

    for split, count in (("train", 24), ("valid", 6), ("test", 6)):
        with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as papers:
            (corpus / f"{split}.jsonl").write_text("".join(next(papers) for _ in range(count)))
    data, model = root / "data", root / "model"

    def prepare(out: Path) -> list[str]:
        return ["pyramidions", "prepare", str(corpus), "--out", str(out / "data"), "--vocab-size", "800"]

    def train(out: Path) -> list[str]:
        save = ["--save-dir", str(out / "checkpoints")]
        return ["fairseq-train", str(data), "--user-dir", str(PLUGIN), *_TRAINING, *save]

    for command in (prepare(root), train(model)):
        status, output = run(command)
        if status:
            sys.exit(output)
    trained = str(model / "checkpoints")
    last = f"{trained}/checkpoint_last.pt"
    paper = root / "paper.txt"
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        paper.write_text(next(papers))
    reference = root / "reference"
    reference.mkdir()
    for command in (summarize := _summarize(trained, paper), export := _export(trained), average := _average(last)):
        status, output = run(command(reference))
        if status:
            sys.exit(output)
    at_saves = [
        *(("kill", "open", "*.pt.tmp", n) for n in (1, 3)),
        *(("kill", "os.rename", "*.pt.tmp", n) for n in (1, 4)),
        *(("kill", "shutil.copyfile", "*checkpoint_best.pt", n) for n in (1, 3)),
        *(("kill-in-copy", "shutil.copyfile", "*checkpoint_best.pt", n) for n in (1, 3)),
        *(("kill", "shutil.copyfile", "*checkpoint_last.pt", n) for n in (1, 3)),
        *(("kill-in-copy", "shutil.copyfile", "*checkpoint_last.pt", n) for n in (1, 2, 5)),
        ("kill", "os.remove", "*checkpoint_*.pt", 1),
        *(("full-a-second", "open", "*.pt.tmp", n) for n in (1, 3)),
        *(("nearly-full", "open", "*.pt.tmp", n) for n in (1, 3)),
        *(("nearly-full", "shutil.copyfile", "*checkpoint_last.pt", n) for n in (1, 3)),
    ]
    at_ends = [("kill", "os.rename", "*{}*", 1), ("kill", "open", "*{}*", 1), ("full", "open", "*{}*", 1)]

    def ends(name: str) -> tuple[tuple[str, str, str, int], ...]:
        return tuple((fault, event, pattern.format(name), number) for fault, event, pattern, number in at_ends)

    return [
        Subject("fairseq-train", train, "checkpoints", _same_weights, _checkpoints_whole, tuple(at_saves)),
        Subject("prepare", prepare, "data", _same_folder, _absent_or_like(data, _same_folder), ends("data")),
        Subject(
            *("summarize", summarize, "summary.jsonl", _same_file),
            _absent_or_like(reference / "summary.jsonl", _same_file),
            ends("summary.jsonl"),
        ),
        Subject(
            "export",
            export,
            "export",
            _same_folder,
            _absent_or_like(reference / "export", _same_folder),
            ends("export"),
        ),
        Subject(
            *("average", average, "averaged.pt", _same_file),
            _absent_or_like(reference / "averaged.pt", _same_file),
            ends("averaged.pt"),
        ),
    ]


def _summarize(model: str, paper: Path) -> Callable[[Path], list[str]]:
    settings = ["--json", "--beam", "1", "--max-len", "20"]
    return lambda out: ["pyramidions", "summarize", model, str(paper), *settings, "-o", str(out / "summary.jsonl")]


def _export(model: str) -> Callable[[Path], list[str]]:
    return lambda out: ["pyramidions", "export", model, str(out / "export")]


def _average(checkpoint: str) -> Callable[[Path], list[str]]:
    return lambda out: ["pyramidions", "average", checkpoint, "-o", str(out / "averaged.pt")]


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
    kinds = Counter((each.command, each.harm.split(" at ")[0]) for each in tries)
    held = Counter((each.command, each.harm.split(" at ")[0]) for each in tries if each.wrong is None)
    lines = ["| command | harm | held | of |", "|---|---|---|---|"]
    lines += [f"| {command} | {harm} | {held[command, harm]} | {count} |" for (command, harm), count in kinds.items()]
    return "\n".join(lines)


def main() -> None:
    """Run the campaign."""
    made: argparse.ArgumentParser = parser(__doc__, "faults", repeats=5)
    made.add_argument("--only", nargs="+", metavar="COMMAND", help="fairseq-train, prepare, summarize, export, average")
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
            else:
                campaign.twice(subject)
    held = sum(each.wrong is None for each in campaign.tries)
    print(f"\n{table(campaign.tries)}\n\n{held} of {len(campaign.tries)} held. Full disks: {campaign.full_disks}.")
    record(args, held=held, tries=[asdict(each) for each in campaign.tries], full_disks=campaign.full_disks)
    if args.check and held < len(campaign.tries):
        sys.exit(1)


if __name__ == "__main__":
    main()
