"""What the campaign of faults harms and what that reads; how a command is run or killed, and two results compared."""

import filecmp
import json
import lzma
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from pyramidions.files.archive import is_whole_checkpoint
from pyramidions.files.atomic import atomic_folder

PAUSE = 0.004  # seconds between two looks at a command that runs


@dataclass(frozen=True)
class Ran:
    """What became of a command.

    Attributes:
        status: its exit status; a negative one is that of the signal that ended it.
        output: what it printed.
        began: seconds until it began to write; None if it never did.
        took: seconds until its end.
    """

    status: int
    output: str
    began: float | None
    took: float

    @property
    def killed(self) -> bool:
        """Whether it was killed, and had not ended before."""
        return self.status == -signal.SIGKILL


def start(command: list[str], folder: Path | None = None) -> subprocess.Popen[str]:
    """Start a command of this environment, with one thread, in a process group of its own.

    Args:
        command: its words; the first is the name of a program.
        folder: in which it runs; this process's without one.
    """
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        [str(Path(sys.executable).parent / command[0]), *command[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )


def run(
    command: list[str], *, writes: Path | None = None, begins: str | None = None, kill_after: float | None = None
) -> Ran:
    """Run a command.

    Args:
        command: its words.
        writes: an empty folder: that something lies there shows that it has begun to write.
        begins: part of a line that it prints, which shows this instead.
        kill_after: seconds from its start to SIGKILL, or from its beginning to write where ``begins`` is given.
    """
    process, lines = start(command), list[str]()
    shown = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if begins is not None and begins in line:
                shown.set()

    reader = threading.Thread(target=read)
    reader.start()
    started, began = time.monotonic(), None
    try:
        while process.poll() is None:
            now = time.monotonic() - started
            if began is None and (shown.is_set() if begins is not None else writes is not None and _any(writes)):
                began = now
            since = began if begins is not None else 0.0
            if kill_after is not None and since is not None and now - since >= kill_after:
                _kill(process)
                break
            time.sleep(PAUSE)
    except BaseException:
        _kill(process)
        raise
    status = process.wait()
    took = time.monotonic() - started
    reader.join()
    return Ran(status, "".join(lines), began, took)


def _kill(process: subprocess.Popen[str]) -> None:
    # It may have ended in between.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _any(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return next(entries, None) is not None


Call = tuple[str, str, str, int]
Compare = Callable[[Path, Path], str | None]
COMMANDS = "commands"


@dataclass(frozen=True)
class Subject:
    """A command that is harmed, and what it makes.

    Attributes:
        name: chooses it.
        group: `commands`, or the family of a training.
        command: its words for a folder in which it is to work.
        made: the names, in this folder, of what it makes.
        same: says what differs between what two runs made, or None.
        whole: says what is damaged in what a harmed run left (the first path), or None; an undisturbed run made the
            second. What is not there is not damaged.
        calls: fault, audit event, pattern of a path and number of each call at which it is harmed.
        drawn: calls of the same kind; half of the repeats pick one at random instead of a moment.
        begins: part of the line that shows that it has begun to work; without one, its first file does.
        twice: whether it is started twice at once.
    """

    name: str
    group: str
    command: Callable[[Path], list[str]]
    made: tuple[str, ...]
    same: Compare
    whole: Compare
    calls: tuple[Call, ...] = ()
    drawn: tuple[Call, ...] = ()
    begins: str | None = None
    twice: bool = True

    @property
    def trains(self) -> bool:
        """Whether it is a training, which does nothing when it is started again after its end."""
        return self.group != COMMANDS


def same(first: Path, second: Path) -> str | None:
    """Compare two files or two folders of files byte for byte."""
    if not first.exists():
        return f"{first.name} is missing"
    if first.is_dir():
        return _same_folder(first, second)
    return None if filecmp.cmp(first, second, shallow=False) else f"{first.name} differs from an undisturbed run's"


def absent_or_like(first: Path, second: Path) -> str | None:
    """Say what differs between a harmed run's result and the whole one, if there is any."""
    return same(first, second) if first.exists() else None


def at_ends(*names: str) -> tuple[Call, ...]:
    """Return the calls that write files of these names: kills before the first byte and the last, and a full disk."""
    ways = (("kill", "os.rename"), ("kill", "open"), ("full", "open"))
    return tuple((fault, event, f"*{name}*", 1) for name in names for fault, event in ways)


def same_weights(first: Path, second: Path) -> str | None:
    """Compare last and best checkpoint: weights, optimizer and where the data stood. All others must be whole."""
    if damaged := [path.name for path in sorted(first.glob("checkpoint*.pt")) if not is_whole_checkpoint(path)]:
        return f"{', '.join(damaged)} damaged in the end"
    for name in ("checkpoint_last.pt", "checkpoint_best.pt"):
        if not (first / name).exists():
            return f"{name} is missing"
        one, other = (torch.load(path / name, weights_only=True) for path in (first, second))
        if not _equal(_lasting(one), _lasting(other)):
            return f"{name} differs from that of an undisturbed run"
    return None


def checkpoints_whole(first: Path, second: Path) -> str | None:
    """Say which checkpoint is damaged where no whole one is left beside it."""
    found = sorted(first.glob("checkpoint*.pt")) if first.exists() else []
    damaged = [path.name for path in found if not is_whole_checkpoint(path)]
    return f"none of {', '.join(damaged)} is whole" if damaged and len(damaged) == len(found) else None


def _same_folder(first: Path, second: Path) -> str | None:
    names, known = (
        {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()} for folder in (first, second)
    )
    if names != known:
        return f"{first.name} holds other files than an undisturbed run's: {', '.join(sorted(names ^ known))}"
    _, differing, missing = filecmp.cmpfiles(first, second, names, shallow=False)
    return f"{', '.join(differing + missing)} differ" if differing or missing else None


def _lasting(state: dict[str, Any]) -> object:
    return state["model"], state["last_optimizer_state"], state["extra_state"]["train_iterator"]


def _equal(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.equal(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other


ROOT = Path(__file__).parents[2]
PLUGIN = str(ROOT / "pyramidions")
SAMPLE = ROOT / "data" / "sample"
# The tests know how to make tiny presets, pretrained models and results.
sys.path.append(str(ROOT / "tests"))

LAST = "checkpoints/checkpoint_last.pt"
#: by its name, the vocabulary of a data folder: sentences, lines or nothing are marked
DATA = {"data": [], "labelled": ["--labels"], "turns": ["--turn-markers"]}
_SPLITS = {"train": 24, "valid": 6, "test": 6}


class Materials:
    """Whole inputs in a folder, which are kept for the next sitting.

    Args:
        folder: in which they lie.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def made(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return a folder, which `make` fills the first time."""
        path = self._folder / name
        if not path.exists():
            print(f"making {name}", flush=True)
            with atomic_folder(path) as partial:
                make(partial)
        return path

    @cached_property
    def corpus(self) -> Path:
        """A few papers of the sample, as train.jsonl, valid.jsonl and test.jsonl."""

        def make(folder: Path) -> None:
            for split, count in _SPLITS.items():
                with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as papers:
                    (folder / f"{split}.jsonl").write_text("".join(islice(papers, count)))

        return self.made("corpus", make)

    @cached_property
    def papers(self) -> Path:
        """The papers of the test split."""
        return self.corpus / "test.jsonl"

    @cached_property
    def text(self) -> Path:
        """A plain text, and three short ones in a .jsonl file."""

        def make(folder: Path) -> None:
            articles = [json.loads(line)["article"] for line in self.papers.read_text().splitlines()]
            (folder / "text.txt").write_text("\n".join(articles)[:20_000])
            short = "".join(json.dumps({"text": article[:600]}) + "\n" for article in articles[:3])
            (folder / "texts.jsonl").write_text(short)

        return self.made("text", make)

    def data(self, name: str = "data") -> Path:
        """A prepared folder, one of DATA."""
        flags = ["--vocab-size", "800", *DATA[name]]
        return self._of_command(
            name, lambda out: ["prepare", str(self.corpus), "--out", str(out / "data"), *flags], "data"
        )

    @cached_property
    def characters(self) -> Path:
        """A prepared folder of characters."""
        return self._of_command("characters", lambda out: prepare_characters(self, out / "data"), "data")

    def model(self, name: str, train: Callable[[Path], list[str]]) -> Path:
        """The last checkpoint of a training."""
        return self.made(name, lambda folder: _succeed(train(folder))) / LAST

    @cached_property
    def pretrained(self) -> Path:
        """A tiny BART with random weights."""

        def make(folder: Path) -> None:
            from small_pretrained import model_of, save

            save(model_of("bart"), folder)

        return self.made("pretrained", make)

    @cached_property
    def imported(self) -> Path:
        """The checkpoint that `import` makes of it."""
        return self._of_command("imported", lambda out: import_bart(self, out), "bart.pt")

    @cached_property
    def imported_data(self) -> Path:
        """The corpus in the pieces of the imported model."""
        tokenizer = ["--tokenizer", str(self.imported)]
        corpus = str(self.corpus)
        return self._of_command(
            "imported-data", lambda out: ["prepare", corpus, "--out", str(out / "data"), *tokenizer], "data"
        )

    @cached_property
    def summaries(self) -> Path:
        """Summaries of the test split: their first sentences."""
        return self._of_command(
            "summaries",
            lambda out: ["extract", str(self.papers), "--method", "lead", "-o", str(out / "summaries.jsonl")],
            "summaries.jsonl",
        )

    def _of_command(self, name: str, command: Callable[[Path], list[str]], made: str) -> Path:
        return self.made(name, lambda folder: _succeed(["pyramidions", *command(folder)])) / made


def prepare_characters(materials: Materials, out: Path) -> list[str]:
    """Return the words that make a folder of characters."""
    text = str(materials.text / "text.txt")
    sizes = ["--valid-characters", "500", "--test-characters", "500", "--pieces", "60"]
    return ["prepare", text, "--characters", "en", *sizes, "--out", str(out)]


def import_bart(materials: Materials, out: Path) -> list[str]:
    """Return the words that make a checkpoint of the pretrained model, with blocks and pooling."""
    attention = ["--self-attention", "blockwise(block_size=40)"]
    sizes = ["--max-source-positions", "120", "--pooling-lengths", "None,8"]
    return ["import", str(materials.pretrained), "-o", str(out / "bart.pt"), *sizes, *attention]


def _succeed(command: list[str]) -> None:
    if (done := run(command)).status:
        sys.exit(done.output)
