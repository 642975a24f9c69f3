"""The commands that the campaign of faults harms, and how what they make is compared."""

import filecmp
import lzma
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from pyramidions.files.archive import is_whole_checkpoint

SAMPLE = Path(__file__).parents[1] / "data" / "sample"
PLUGIN = Path(__file__).parents[1] / "pyramidions"
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


def _same_weights(first: Path, second: Path) -> str | None:
    """Compare last and best checkpoint: weights, optimizer and where the data stood. All others must be whole."""
    if damaged := [path.name for path in sorted(first.glob("checkpoint*.pt")) if not is_whole_checkpoint(path)]:
        return f"{', '.join(damaged)} damaged in the end"
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
    damaged = [path.name for path in found if not is_whole_checkpoint(path)]
    return f"none of {', '.join(damaged)} is whole" if damaged and len(damaged) == len(found) else None


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


def subjects(root: Path) -> list[Subject]:
    """Make a small corpus and a trained model; return the commands that are harmed.

    Args:
        root: for the corpus, the data folder and the model.
    """
    corpus = root / "corpus"
    corpus.mkdir()
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
    generated = reference / "generate-test.txt"

    def generate(out: Path) -> list[str]:
        task = ["--user-dir", str(PLUGIN), "--task", "long_document_summarization", "--cpu", "--gen-subset", "test"]
        decoding = ["--path", last, "--beam", "1", "--max-len-b", "20", "--min-len", "1", "--batch-size", "2"]
        return ["fairseq-generate", str(data), *task, *decoding, "--results-path", str(out)]

    def refused_or_whole(path: Path) -> str | None:
        if not path.exists() or filecmp.cmp(path, generated, shallow=False):
            return None
        status, _ = run(["pyramidions", "score", str(path), "--data", str(data)])
        return None if status else f"a part of {path.name} is scored like the whole"

    if (done := run(generate(reference)))[0]:
        sys.exit(done[1])
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
        Subject(
            *("fairseq-generate", generate, "generate-test.txt", _same_file, refused_or_whole),
            (("kill", "open", "*generate-test.txt", 1), ("full", "open", "*generate-test.txt", 1)),
        ),
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
