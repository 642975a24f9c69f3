"""Steps, each of commands and of what shows that they are done; runs one: locks its folder, logs, stops, marks."""

import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any, NamedTuple

import click

from lab.peak import resident_peak, told, training_memory
from pyramidions.base.errors import UserError
from pyramidions.files.atomic import atomic_file, write_file
from pyramidions.files.processes import start_process, stop_processes

Say = Callable[[str], None]
Hashes = Mapping[str, str]

_TRAINING = re.compile(r'"epoch": (\d+), "update": ([\d.]+), "loss": "([\d.]+)"')
_LINES = 15  # of a log that are shown where a command failed


class Command(NamedTuple):
    """One process.

    Attributes:
        words: the program and its arguments.
        gpus: numbers of the GPUs that it sees; empty for the CPU, None for all GPUs.
    """

    words: tuple[str, ...]
    gpus: tuple[int, ...] | None = None


class Step(NamedTuple):
    """Commands that run side by side.

    Attributes:
        name: "prepare", that of a start, "train", "loss", "generate", "score", "time" or "time-training".
        commands: what is run.
        folder: holds its log and its mark.
        made: its output.
        parts: files that are joined to ``made`` in the end; empty if a command writes it itself.
        nodes: machines that it needs.
        gpus: GPUs that it needs on each.
        trains: whether it is a training, whose peak memory is recorded.
    """

    name: str
    commands: tuple[Command, ...]
    folder: Path
    made: Path
    parts: tuple[Path, ...] = ()
    nodes: int = 1
    gpus: int = 0
    trains: bool = False

    @property
    def log(self) -> Path:
        """The output of its commands."""
        return self.folder / f"{self.name}.log"

    @property
    def mark(self) -> Path:
        """The file that marks the step as done, and says where and by which code."""
        return self.folder / f"{self.name}.ran.json"

    @property
    def is_done(self) -> bool:
        """Whether the step ran to its end."""
        return self.mark.is_file() and self.made.is_file()


class StepError(Exception):
    """A command of a step ended with an error."""


def printed(command: Command) -> str:
    """Return a command as one would type it."""
    words = shlex.join(command.words)
    return words if command.gpus is None else f"CUDA_VISIBLE_DEVICES={','.join(map(str, command.gpus))} {words}"


@contextmanager
def locked(folder: Path, wait: Say | None = None) -> Iterator[int]:
    """Lock a folder; yield the descriptor of the lock, which the processes that we start inherit.

    The kernel releases the lock when the last of them has ended, whatever ended it: a training that outlives a killed
    run is not started a second time beside itself.

    Args:
        folder: created if it does not exist.
        wait: told that we wait for the lock; None does not wait.

    Raises:
        StepError: another process holds the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = (folder / "lock").read_text() or "one that just began"
            if wait is None:
                told = f"another process ({holder}) still works in {folder}: stop it, or wait for it."
                raise StepError(told) from None
            wait(f"  waiting for another process ({holder}) that works in {folder}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock.fileno()


def is_done(step: Step, made_from: Hashes) -> bool:
    """Return whether a step is done.

    Args:
        step: the step.
        made_from: hashes of the data and configs that it reads, as its mark has them.

    Raises:
        StepError: it was done with other data or another config.
    """
    if not step.is_done:
        return False
    if json.loads(step.mark.read_text()).get("made_from") != made_from:
        raise StepError(
            f"{step.name} was done with other data or another config: give another --out, or move {step.folder} away."
        )
    return True


def run_step(
    step: Step, made_from: Hashes, say: Say, *, waits: bool = False, environment: Mapping[str, str] | None = None
) -> float | None:
    """Run a step here unless it is done, and mark it as done.

    Args:
        step: what to run.
        made_from: hashes of the data and configs that it reads.
        say: receives progress, one line at a time.
        waits: whether to wait for another process that works on the step, or to fail.
        environment: variables for its commands.

    Returns:
        Seconds it took; None if it was done before.

    Raises:
        StepError: a command failed or did not write its output, another process holds the folder, or the step was
            done with other data or another config.
    """
    with locked(step.folder, say if waits else None) as descriptor:
        # Whoever held the lock may have done the step.
        if is_done(step, made_from):
            return None
        start = time.monotonic()
        run_commands(step, step.log, descriptor, say, environment)
        seconds = time.monotonic() - start
        _join(step)
        about = {"seconds": round(seconds, 1), "made_from": made_from, **_provenance(step)}
        if step.trains:
            about["memory"] = training_memory(step.log, step.gpus)
        # Last of all: output without a mark is made again.
        write_file(step.mark, (json.dumps(about, indent=1) + "\n").encode())
        return seconds


def _provenance(step: Step) -> dict[str, Any]:
    """Return by which code a step ran, and where."""
    # Imports torch, which a job that fails can do without.
    from pyramidions.base.environment import commit, versions

    hardware = {**_hardware("cuda" if step.gpus else "cpu"), "nodes": step.nodes, "gpus": step.gpus}
    return {"commit": commit(), "versions": versions(), "hardware": hardware}


@cache
def _hardware(device: str) -> dict[str, Any]:
    """Return the hardware, as another process reports it: asking here would hold some of a GPU's memory."""
    from pyramidions.base.environment import hardware

    code = f"import json, sys; from {hardware.__module__} import hardware; print(json.dumps(hardware(sys.argv[1])))"
    done = subprocess.run([sys.executable, "-c", code, device], capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def run_commands(
    step: Step, log: Path, descriptor: int | None, say: Say, environment: Mapping[str, str] | None = None
) -> None:
    """Run the commands of a step side by side; stop all of them if one fails or we are stopped.

    Raises:
        StepError: a command failed.
    """
    processes: list[subprocess.Popen[bytes]] = []
    # Bytes of memory of a training on the CPU.
    peak = 0

    def are_over() -> bool:
        nonlocal peak
        if step.trains and not step.gpus:
            peak = max(peak, *(resident_peak(process.pid) for process in processes))
        codes = [process.poll() for process in processes]
        return None not in codes or any(codes)

    with log.open("ab") as output:
        output.writelines(f"$ {printed(command)}\n".encode() for command in step.commands)
        output.flush()
        try:
            for command in step.commands:
                processes.append(_started(command, output, descriptor, environment or {}))
            if descriptor is not None:
                # Names the holder of the lock to whoever finds it taken.
                os.ftruncate(descriptor, 0)
                os.write(descriptor, " ".join(str(process.pid) for process in processes).encode())
            watch(are_over, step.name, log, say)
        finally:
            stop_processes(processes)
            output.write(told(peak))
    if any(process.returncode for process in processes):
        tail = "\n".join(f"    {line}" for line in log.read_text(errors="replace").splitlines()[-_LINES:])
        raise StepError(f"{step.name} failed; the end of {log}:\n{tail}")


def _started(
    command: Command, output: IO[bytes], descriptor: int | None, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    # We decide what runs where: fairseq would take the whole of a SLURM allocation.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    if command.gpus is not None:
        # Numbers count among the GPUs that we see ourselves.
        seen = [name for name in inherited.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
        visible = [seen[gpu] if seen else str(gpu) for gpu in command.gpus]
        inherited["CUDA_VISIBLE_DEVICES"] = ",".join(visible)
    variables = {**inherited, "PYTHONWARNINGS": "ignore", **environment}
    try:
        descriptors = () if descriptor is None else (descriptor,)
        return start_process(command.words, output, variables, descriptors=descriptors)
    except OSError as error:
        raise StepError(f"{command.words[0]} cannot be started: {error.strerror}.") from None


def watch(
    is_over: Callable[[], bool], name: str, log: Path, say: Say, pause: float = 0.1, *, live: bool = True
) -> None:
    """Wait until a step is over, and say from time to time where it is.

    Args:
        is_over: asked again and again.
        name: of the step.
        log: where its progress is read.
        say: receives progress, unless a terminal shows it.
        pause: seconds between two questions.
        live: a terminal may show progress on a line of its own, for nothing else is watched at the same time.
    """
    on_terminal = live and sys.stderr.isatty()
    start = shown = time.monotonic()
    while not is_over():
        time.sleep(pause)
        now = time.monotonic()
        if now - shown >= (1.0 if on_terminal else 60.0):
            shown = now
            line = f"    {name}, {now - start:.0f} s: {_where(log)}"
            if on_terminal:
                click.echo(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}", nl=False, err=True)
            else:
                say(line[:160])
    if on_terminal and shown > start:
        click.echo("\r\033[K", nl=False, err=True)


def _where(log: Path) -> str:
    """Return where a command is: epoch and loss of fairseq's training, else the last line of its log."""
    if not log.is_file():
        return "has not begun"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        text = file.read().decode(errors="replace")
    if trained := _TRAINING.findall(text):
        epoch, updates, loss = trained[-1]
        return f"epoch {epoch}, {updates} epochs done, loss {loss}"
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def _join(step: Step) -> None:
    if missing := [path for path in step.parts or (step.made,) if not path.is_file()]:
        raise StepError(f"{step.name} ended well, but did not write {missing[0]}.")
    if step.parts:
        with atomic_file(step.made) as file:
            for part in step.parts:
                with part.open("rb") as text:
                    shutil.copyfileobj(text, file)


def check_programs(steps: list[Step]) -> None:
    """Notice before hours of work that a program is missing.

    Raises:
        UserError: a program that is not installed.
    """
    for name in dict.fromkeys(command.words[0] for step in steps for command in step.commands):
        if shutil.which(name) is None:
            raise UserError(f"{name} is not installed: scripts/setup.sh train brings what training needs.")
