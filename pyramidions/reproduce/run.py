"""Runs steps: skips what is done, keeps a log of each, and stops children when it is stopped."""

import contextlib
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pyramidions.data.atomic import atomic_file
from pyramidions.errors import UserError
from pyramidions.reproduce.nodes import Say
from pyramidions.reproduce.plan import Command, Step

_GRACE = 20.0  # seconds that a process has to end after it was asked to
_TRAINING = re.compile(r"epoch (\d+): +(\d+) / (\d+) loss=([\d.]+)")
_LINES = 15  # of a log that are shown where a command failed


class StepError(Exception):
    """A command of a step ended with an error."""


def printed(command: Command) -> str:
    """Return a command as one would type it."""
    words = shlex.join(command.words)
    return words if command.gpus is None else f"CUDA_VISIBLE_DEVICES={','.join(map(str, command.gpus))} {words}"


@contextmanager
def locked(folder: Path, wait: Say | None = None) -> Iterator[int]:
    """Hold a folder for ourselves and the processes that we start; give the descriptor they are to keep open.

    The kernel lets go when the last of them has ended, however that came about: a training that outlives a killed
    run is not trained a second time beside itself.

    Args:
        folder: made where it is not there.
        wait: is told that we wait for somebody else to let go; None does not wait.

    Raises:
        StepError: somebody else holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 1000, 0).decode() or "one that just began"
            if wait is None:
                told = f"another process ({holder}) still works in {folder}: stop it, or wait for it."
                raise StepError(told) from None
            wait(f"  waiting for another process ({holder}) that works in {folder}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.set_inheritable(descriptor, True)
        yield descriptor
    finally:
        os.close(descriptor)


def run_step(step: Step, descriptor: int | None, say: Say, about: Mapping[str, Any]) -> float | None:
    """Run a step to its end, unless it is done, and mark it.

    A mark says, as ``about["made_from"]``, which data and config the step read.

    Args:
        step: what to run.
        descriptor: of the lock that its processes are to hold; None where there is none.
        say: is told about progress, a line at a time.
        about: what the mark says beside the seconds: where and by which code it ran.

    Returns:
        Seconds it took; None where it was done before.

    Raises:
        StepError: a command failed, or did not make what it should, or the step was done with other data or another
            config.
    """
    if step.is_done:
        if json.loads(step.mark.read_text()).get("made_from") != about.get("made_from"):
            raise StepError(
                f"{step.name} was done with other data or another config: give another --out, "
                f"or move {step.folder} away."
            )
        return None
    step.folder.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    run_commands(step, step.folder / f"{step.name}.log", descriptor, say)
    seconds = time.monotonic() - start
    _join(step)
    # Last of all: what is made without its mark is made again.
    with atomic_file(step.mark) as file:
        file.write((json.dumps({"seconds": round(seconds, 1), **about}, indent=1) + "\n").encode())
    return seconds


def run_commands(step: Step, log: Path, descriptor: int | None, say: Say) -> None:
    """Run the commands of a step side by side, and stop all of them where one fails or we are stopped.

    Raises:
        StepError: a command failed.
    """
    start = time.monotonic()
    with log.open("ab") as output:
        for command in step.commands:
            output.write(f"$ {printed(command)}\n".encode())
        output.flush()
        processes = [_started(command, output, descriptor) for command in step.commands]
        if descriptor is not None:
            # So that who is kept out knows by whom.
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, " ".join(str(process.pid) for process in processes).encode(), 0)
        try:
            _wait(processes, log, step.name, start, say)
        finally:
            _end(processes)
    if any(process.returncode for process in processes):
        tail = "\n".join(f"    {line}" for line in log.read_text(errors="replace").splitlines()[-_LINES:])
        raise StepError(f"{step.name} failed; the end of {log}:\n{tail}")


def _started(command: Command, output: IO[bytes], descriptor: int | None) -> "subprocess.Popen[bytes]":
    # What runs where is ours to say: fairseq would take the whole of a Slurm allocation.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    environment = {**inherited, "PYTHONWARNINGS": "ignore", **_visible(command)}
    try:
        return subprocess.Popen(
            command.words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            pass_fds=() if descriptor is None else (descriptor,),
            # A group of its own, so that what it starts itself can be stopped with it.
            start_new_session=True,
        )
    except OSError as error:
        raise StepError(f"{command.words[0]} cannot be started: {error.strerror}.") from None


def _visible(command: Command) -> Mapping[str, str]:
    if command.gpus is None:
        return {}
    # Numbers count among the GPUs that we see ourselves.
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    names = seen.split(",") if seen else [str(gpu) for gpu in range(max(command.gpus, default=-1) + 1)]
    return {"CUDA_VISIBLE_DEVICES": ",".join(names[gpu] for gpu in command.gpus)}


def _wait(processes: "list[subprocess.Popen[bytes]]", log: Path, name: str, start: float, say: Say) -> None:
    """Wait until all have ended or one has failed, and say from time to time where they are."""
    on_terminal = sys.stderr.isatty()
    pause = 1.0 if on_terminal else 60.0
    shown = start
    while True:
        codes = [process.poll() for process in processes]
        if None not in codes or any(codes):
            break
        time.sleep(0.1)
        now = time.monotonic()
        if now - shown >= pause:
            shown = now
            line = f"    {name}, {now - start:.0f} s: {_where(log)}"
            if on_terminal:
                width = shutil.get_terminal_size().columns - 1
                print(f"\r{line[:width]:{width}}", end="", file=sys.stderr, flush=True)
            else:
                say(line[:160])
    if on_terminal and shown > start:
        print(f"\r{'':{shutil.get_terminal_size().columns - 1}}\r", end="", file=sys.stderr, flush=True)


def _where(log: Path) -> str:
    """Say where a command is, from its log: in words where it is fairseq's training, else by the last line."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        text = file.read().decode(errors="replace").replace("\r", "\n")
    if trained := _TRAINING.findall(text):
        epoch, batch, batches, loss = trained[-1]
        return f"epoch {int(epoch)}, batch {batch} of {batches}, loss {loss}"
    lines = text.split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _end(processes: "list[subprocess.Popen[bytes]]") -> None:
    """Stop what still runs, and all that it started."""
    for process in processes:
        if process.poll() is None:
            _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


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
