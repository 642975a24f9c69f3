"""Kills at random moments and full disks: does anything get lost?

    python lab/benchmarks/faults.py --work work/faults --repeats 4 --check
    python lab/benchmarks/faults.py --only train extract --out lab/benchmarks/results/faults.csv

Each try harms a command and runs it again without harm. Then all that lies there must be what an undisturbed run left:
checkpoints in their weights, optimizer and place in the data, other files byte for byte. In between, no name that a
user asked for may hold a part of a file. Nothing else may be left but what was put aside as damaged.

A random limit on the size of files stands in for a full disk: the command must fail, and one of ours in one sentence.
What is kept in `--work` is not made again.
"""

import filecmp
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, namedtuple
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from contenders import parser
from figures import Entry, save
from torch.utils._pytree import tree_flatten

from pyramidions.files.archive import is_whole_checkpoint
from pyramidions.files.atomic import atomic_folder

ROOT = Path(__file__).parents[2]
SAMPLE = f"{ROOT}/data/sample"
RUNS, EARLIER = 8, 0.6  # a command that ended before it was killed is run again, and killed earlier, by this factor
KEPT = (".damaged", ".txt.partial")  # put aside, and left for the user to look at
#: what each command makes in a folder, and its words; a name in braces is what another command made
COMMANDS = {
    "prepare": ("data", f"pyramidions prepare {SAMPLE} --out {{out}}/data --vocab-size 800 --workers 1"),
    "train": (
        "checkpoints",
        f"fairseq-train {{data}} --user-dir {ROOT}/pyramidions --task long_document_summarization --cpu --seed 1 "
        "--arch deep_pyramidion --embed-dim 16 --ffn-embed-dim 32 --num-heads 2 --encoder-layers 2 --decoder-layers 1 "
        "--pooling-lengths None,16 --self-attention blockwise(block_size=32) --max-source-positions 256 "
        "--max-target-positions 48 --criterion pooled_cross_entropy --optimizer adam --lr 1e-3 --lr-scheduler fixed "
        "--batch-size 16 --num-workers 0 --max-update 12 --save-interval-updates 4 --keep-interval-updates 2 "
        "--keep-last-epochs 2 --save-dir {out}/checkpoints",
    ),
    "summarize": (
        "s.jsonl",
        f"pyramidions summarize {{model}} {SAMPLE}/test.jsonl.xz --beam 1 --max-len 9 --resume -o {{out}}/s.jsonl",
    ),
    "export": ("export", "pyramidions export {model} {out}/export"),
    "extract": ("e.jsonl", f"pyramidions extract {SAMPLE}/test.jsonl.xz --words 60 --resume -o {{out}}/e.jsonl"),
}
MADE = {"data": ("prepare", "data"), "model": ("train", "checkpoints/checkpoint_last.pt")}


Ran = namedtuple("Ran", ("status", "output", "seconds"))


def run(words: list[str], kill_after: float | None = None, limit: int = resource.RLIM_INFINITY) -> Ran:
    """Run a command; kill it, and what it has started, after so many seconds, or limit the bytes of a file."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / words[0]), *words[1:]],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"},
            start_new_session=True,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)),
        )
        started = time.monotonic()
        try:
            process.wait(kill_after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - started
        output.seek(0)
        return Ran(process.returncode, output.read(), seconds)


class Campaign:
    """Harms commands in a folder, which keeps what undisturbed runs made."""

    def __init__(self, work: Path, seed: int) -> None:
        self.work, self.random = work, random.Random(seed)

    def words(self, name: str, out: Path) -> list[str]:
        """Return the words of a command that makes something in a folder."""
        text = COMMANDS[name][1]
        made = {each: self.undisturbed(by) / path for each, (by, path) in MADE.items() if f"{{{each}}}" in text}
        return [word.format(out=out, **made) for word in text.split()]

    def undisturbed(self, name: str) -> Path:
        """Return the folder that a command fills without any harm."""
        folder = self.work / "undisturbed" / name
        if not folder.exists():
            with atomic_folder(folder) as place:
                if (done := run(self.words(name, place))).status:
                    sys.exit(f"Without any harm, {name} ends with status {done.status}:\n{done.output}")
        return folder

    def killed(self, name: str) -> str | None:
        """Kill a command at a random moment; say what did not hold."""
        with tempfile.TemporaryDirectory(dir=self.work) as place:
            took = run(self.words(name, Path(place))).seconds
        # Imports come first. The last second counts in any case: some write at their end alone.
        seconds = self.random.uniform(min(took / 2, max(took - 1, 0.0)), took)
        for attempt in range(RUNS):
            with tempfile.TemporaryDirectory(dir=self.work) as folder:
                place = Path(folder)
                if run(self.words(name, place), seconds * EARLIER**attempt).status == -signal.SIGKILL:
                    return self._next_run(name, place)
        return f"could not be tried: it ended {RUNS} times before it was killed"

    def full(self, name: str) -> str | None:
        """Let no file of a command become as large as it should; say what did not hold."""
        largest = max(path.stat().st_size for path in self.undisturbed(name).rglob("*") if path.is_file())
        with tempfile.TemporaryDirectory(dir=self.work) as folder:
            place = Path(folder)
            done = run(self.words(name, place), limit=self.random.randrange(1, largest))
            if done.status == 0:
                return "ended with status 0, as if nothing were wrong"
            last = (done.output.strip().splitlines() or ["nothing said"])[-1]
            if name != "train" and ("Traceback" in done.output or not last.startswith("Error: ")):
                return f"ends without a sentence: {last[:160]}"
            return self._next_run(name, place)

    def _next_run(self, name: str, place: Path) -> str | None:
        """Look at what a harmed run left, run it again, and compare."""
        made, reference = COMMANDS[name][0], self.undisturbed(name)
        if wrong := damaged(place / made, reference / made):
            return f"a part that looks whole: {wrong}"
        if (done := run(self.words(name, place))).status:
            return f"the next run ends with status {done.status}: {done.output.strip()[-160:]}"
        if wrong := different(place / made, reference / made):
            return f"a silent difference: {wrong}"
        known = {path.relative_to(reference) for path in reference.rglob("*")}
        left = {path.relative_to(place) for path in place.rglob("*") if not path.name.endswith(KEPT)} - known
        return f"left behind: {', '.join(sorted(map(str, left)))}" if left else None


def damaged(found: Path, whole: Path) -> str | None:
    """Say what is damaged of a harmed run's result; a training may leave a damaged checkpoint beside a whole one."""
    if checkpoints := sorted(found.glob("checkpoint*.pt")):
        return None if any(map(is_whole_checkpoint, checkpoints)) else "no checkpoint is whole"
    return different(found, whole) if found.is_file() or any(found.glob("*")) else None


def different(found: Path, whole: Path) -> str | None:
    """Say which file of a result, a file or a folder of files, differs from that of an undisturbed run."""
    for path in (each for each in (whole, *whole.rglob("*")) if each.is_file()):
        ours, same = found / path.relative_to(whole), _same_training if path.suffix == ".pt" else _same_bytes
        if not ours.exists() or not same(ours, path):
            return f"{path.name} {'differs' if ours.exists() else 'is missing'}"
    return None


_same_bytes = partial(filecmp.cmp, shallow=False)


def _same_training(one: Path, other: Path) -> bool:
    """Compare weights, optimizer and place in the data."""
    states: list[Any] = [torch.load(path, weights_only=True) for path in (one, other)]
    lasting = [(each["model"], each["last_optimizer_state"], each["extra_state"]["train_iterator"]) for each in states]
    (ours, shape), (theirs, known) = map(tree_flatten, lasting)
    same = (torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(ours, theirs, strict=False))
    return shape == known and all(same)


def main() -> None:
    """Run the campaign."""
    made = parser(__doc__, "kills", repeats=2, devices=False)
    made.add_argument("--work", type=Path, help="keep here what undisturbed runs make (default: nowhere)")
    made.add_argument("--only", nargs="+", choices=COMMANDS, default=COMMANDS, help="some of the commands")
    args = made.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = (args.work or Path(folder)).absolute()
        work.mkdir(parents=True, exist_ok=True)
        campaign, tries, held = Campaign(work, args.seed), Counter[str](), Counter[str]()
        harms = {"killed": campaign.killed, "disk full": campaign.full}
        for name, harm, _ in product(args.only, harms, range(args.repeats)):
            wrong = harms[harm](name)
            tries[f"{name}, {harm}"] += 1
            held[f"{name}, {harm}"] += wrong is None
            print(f"{name}, {harm}: {wrong or 'held'}", flush=True)
    print(f"{held.total()} of {tries.total()} held.")
    save(args, [Entry(what, part, count[what]) for part, count in (("tries", tries), ("held", held)) for what in tries])
    if args.check and held != tries:
        sys.exit(1)


if __name__ == "__main__":
    main()
