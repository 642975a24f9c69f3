"""Runs a step of a row here: locks its folder, says where it is, and records what it ran on when it is done."""

import fcntl
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from pyramidions.files.atomic import atomic_file, write_file
from pyramidions.runs.progress import Progress
from pyramidions.runs.steps import Command, Say, State, Step, StepError, run_step

_RESIDENT = "# peak memory of the process: {} B\n"
_TOLD = re.compile(r"^# peak memory of the process: (\d+) B$", re.MULTILINE)
_TOTAL = re.compile(r"total memory = ([\d.]+) GB")
_FREE = re.compile(r'"gb_free": "([\d.]+)"')
_MINUTE = 60.0


@dataclass(frozen=True)
class RowStep(Step):
    """A step of a row, with its log and run.json in the row's folder; of a training, peak memory is noted.

    It needs so many machines, and GPUs on each.
    """

    nodes: int = 1
    gpus: int = 0
    trains: bool = False

    @property
    def folder(self) -> Path:
        """Where its log lies."""
        return self.log.parent

    @property
    def commands(self) -> Sequence[Command]:
        """What it runs, which is known beforehand."""
        return [] if callable(self.argv) else self.argv

    @property
    def made(self) -> Path:
        """Its output."""
        return self.outputs[0]

    @property
    def state(self) -> State:
        """What is done in its folder."""
        path = self.folder / "run.json"
        known = State.read(path, writer="python -m lab", remedy=f"move {self.folder} away")
        return known or State(path, {"format": State.FORMAT, "done": {}})

    @property
    def is_done(self) -> bool:
        """Whether it ran to its end."""
        return self.state.is_done(self)


def joined(parts: Sequence[Path], made: Path) -> None:
    """Join files."""
    if missing := [part for part in parts if not part.is_file()]:
        raise StepError(f"generate ended well, but did not write {missing[0]}.")
    with atomic_file(made) as file:
        for part in parts:
            with part.open("rb") as text:
                shutil.copyfileobj(text, file)


def bits_of(test: Path, train: Path, made: Path) -> None:
    """Write bits per character of the test, and characters per segment of the last validation, from logs."""
    bits = re.findall(r"Loss \(base 2\): ([0-9.]+),", test.read_text(errors="replace"))
    if not bits:
        raise StepError(f"test ended well, but did not write bits per character to {test}.")
    # A model without segments logs none.
    factors = re.findall(r'"valid_shortening_factor": "([0-9.]+)"', train.read_text(errors="replace"))
    found = {"bpc": float(bits[-1]), "shortening_factor": float(factors[-1]) if factors else None}
    write_file(made, json.dumps(found).encode())


@contextmanager
def locked(folder: Path, wait: Say | None = None) -> Iterator[None]:
    """Lock a folder, made if need be; `wait` gets a message before waiting for the lock, None does not wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if wait is None:
                told = f"another process still works in {folder}: stop it, or wait for it."
                raise StepError(told) from None
            wait(f"  waiting for another process that works in {folder}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run_here(
    step: RowStep, say: Say, *, waits: bool = False, environment: Mapping[str, str] | None = None
) -> float | None:
    """Run a step here unless it is done, and return the seconds it took; None if it was done before.

    Raises:
        StepError: it failed, or another process works on it, for which it does not wait.
    """
    with locked(step.folder, say if waits else None):
        # Whoever held the lock may have done the step.
        if step.is_done:
            return None
        start = time.monotonic()
        run_step(replace(step, watch=partial(watching, step, say)), environment)
        seconds = time.monotonic() - start
        memory = {"memory": training_memory(step.log, step.gpus)} if step.trains else {}
        step.state.finish(step, seconds=round(seconds, 1), **_provenance(step), **memory)
        return seconds


def _provenance(step: RowStep) -> dict[str, Any]:
    # Imports torch, which a job that fails can do without.
    from lab.environment import commit, versions

    hardware = {**_hardware("cuda" if step.gpus else "cpu"), "nodes": step.nodes, "gpus": step.gpus}
    return {"commit": commit(), "versions": versions(), "hardware": hardware}


@cache
def _hardware(device: str) -> dict[str, Any]:
    """Return the hardware, as another process reports it: asking here would hold some of a GPU's memory."""
    from lab.environment import hardware

    code = f"import json, sys; from {hardware.__module__} import hardware; print(json.dumps(hardware(sys.argv[1])))"
    # The lab is in no wheel: the process finds it from the checkout.
    checkout = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, device], cwd=checkout, capture_output=True, text=True, check=True
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


class Teller:
    """Says each minute where a step is."""

    def __init__(self, step: RowStep, say: Say) -> None:
        self._step, self._say = step, say
        self._start = self._said = time.monotonic()

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._said >= _MINUTE:
            self._said = now
            self._say(f"    {self._step.name}, {now - self._start:.0f} s: {_where(self._step.log)}"[:160])


@contextmanager
def watching(step: RowStep, say: Say) -> Iterator[Callable[[Sequence["subprocess.Popen[bytes]"]], None]]:
    """Say where a step is; let the log of a training on the CPU end with the peak memory of its process."""
    teller, peak = Teller(step, say), 0

    def tick(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
        nonlocal peak
        teller()
        if step.trains and not step.gpus:
            peak = max(peak, *(memory_of(process.pid) for process in processes))

    try:
        yield tick
    finally:
        if peak:
            with step.log.open("a") as log:
                log.write(_RESIDENT.format(peak))


def _where(log: Path) -> str:
    """Return where a command is: updates and loss of fairseq's training, else the last line of its log."""
    if not log.is_file():
        return "has not begun"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = file.read().decode(errors="replace").splitlines()
    training = Progress()
    for line in lines:
        training.read(line)
    if training.updates:
        return f"{training.updates:,} updates, {training}"
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def memory_of(pid: int | str, name: str = "VmHWM") -> int:
    """Return bytes that a process has in memory; 0 where the system does not say, or it has ended.

    VmRSS is what it has now, VmHWM the most so far, which never falls: asking once near the end is enough.
    """
    try:
        status = Path("/proc", str(pid), "status").read_text()
    except OSError:
        return 0
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def training_memory(log: Path, gpus: int) -> dict[str, Any] | None:
    """Return the peak memory of a training, over all runs that it took; None if its log does not tell.

    "bytes" is what the process had on the CPU, or what the first one allocated on a GPU, which fairseq logs to 0.1 GiB.
    """
    text = log.read_text(errors="replace")
    if not gpus:
        peaks = [int(peak) for peak in _TOLD.findall(text)]
        return {"bytes": max(peaks), "of": "process"} if peaks else None
    total, free = ([float(number) for number in of.findall(text)] for of in (_TOTAL, _FREE))
    return {"bytes": round((max(total) - min(free)) * 2**30), "of": "gpu"} if total and free else None
