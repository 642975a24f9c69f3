"""The step engine: runs commands in their order, keeps in a file what is done, and goes on where it stopped."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.base.strict_json import as_json_bytes, parse_json
from pyramidions.files.atomic import write_file
from pyramidions.files.processes import as_typed, start_process, stop_processes

Say = Callable[[str], None]
#: Gives, while commands run, what is called again and again with their processes.
Watch = Callable[[], AbstractContextManager[Callable[[Any], None]]]

_ERROR = re.compile(r"(?:[\w.]+\.)?(\w*(?:Error|Exception|Interrupt|Exit)|error)\b:? ?(.*)")
_TAIL = 1 << 16  # bytes of a log in which the reason is looked for
_PAUSE, _DAY = 0.1, 86_400.0  # seconds


class StepError(UserError):
    """A step failed."""


class Command(NamedTuple):
    """One process."""

    words: tuple[str, ...]  # the program and its arguments
    gpus: tuple[int, ...] | None = None  # numbers of the GPUs that it sees; empty for the CPU, None for all GPUs

    def __str__(self) -> str:
        words = shlex.join(self.words)
        return words if self.gpus is None else f"CUDA_VISIBLE_DEVICES={','.join(map(str, self.gpus))} {words}"

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Return our variables and `more`, without those of SLURM: we decide what runs where."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        if self.gpus is not None:
            # Numbers count among the GPUs that we see ourselves.
            seen = [name for name in ours.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
            ours["CUDA_VISIBLE_DEVICES"] = ",".join(seen[gpu] if seen else str(gpu) for gpu in self.gpus)
        return {**ours, "PYTHONWARNINGS": "ignore", **more}


@dataclass(frozen=True)
class Step:
    """Commands that run side by side, and what they make."""

    name: str  # of the step
    # The commands, or work of ours that returns them, where they follow from earlier steps.
    argv: Sequence[Command] | Callable[[], Sequence[Command]]
    outputs: tuple[Path, ...]  # files or folders that are there when it is done
    log: Path  # gets the output of the commands, after that of earlier runs
    out: Path | None = None  # gets their standard output instead
    cwd: Path | None = None  # the folder in which they run; None for ours
    after: Callable[[], object] | None = None  # work of ours after the commands
    watch: Watch | None = None  # what happens while they run
    saves: bool = False  # a command that is interrupted finishes and saves a piece of its work, for which we wait
    made_from: Mapping[str, str] | None = None  # hashes of what it reads; another one makes it another step


class State:
    """What is done of a run, and other facts of it: a file that is written at once when they change."""

    FORMAT = 1

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self.path = path
        self.facts = facts

    @classmethod
    def read(cls, path: Path, *objects: str, writer: str, remedy: str) -> Self | None:
        """Read a file; None if there is none."""
        if not path.exists():
            return None
        try:
            facts = parse_json(path.read_bytes())
        except ValueError:
            facts = None
        if not isinstance(facts, dict) or not all(isinstance(facts.get(name), dict) for name in (*objects, "done")):
            raise UserError(f"{path} must be as written by `{writer}`; {remedy}.")
        if facts.get("format") != cls.FORMAT:
            raise UserError(f"{path} is of another version of pyramidions; {remedy}.")
        return cls(path, facts)

    @classmethod
    def new(cls, path: Path, **facts: Any) -> Self:
        state = cls(path, {"format": cls.FORMAT, **facts, "done": {}})
        state._write()
        return state

    def note(self, **facts: Any) -> None:
        self.facts |= facts
        self._write()

    def is_done(self, step: Step) -> bool:
        """Return whether a step ran to its end and its outputs exist."""
        facts = self.facts["done"].get(step.name)
        if facts is None or not all(path.exists() for path in step.outputs):
            return False
        if step.made_from is not None and facts.get("made_from") != step.made_from:
            raise StepError(
                f"{step.name} was done with other data or another config: give another --out, or move "
                f"{self.path.parent} away."
            )
        return True

    def forget(self, *names: str) -> None:
        done = {name: facts for name, facts in self.facts["done"].items() if name not in names}
        if done != self.facts["done"]:
            self.note(done=done)

    def finish(self, step: Step, **facts: Any) -> None:
        origin = {} if step.made_from is None else {"made_from": step.made_from}
        self.note(done={**self.facts["done"], step.name: {**facts, **origin}})

    def _write(self) -> None:
        write_file(self.path, as_json_bytes(self.facts))


def run(steps: Sequence[Step], state: State, say: Say) -> None:
    """Run the steps that are not done, in their order, and all behind one that is run: they read what it made."""
    again = False
    for place, step in enumerate(steps):
        title = f"{place + 1} of {len(steps)}: {step.name}"
        if not again and state.is_done(step):
            say(f"{title}, done before")
            continue
        say(title)
        again = True
        state.forget(*(each.name for each in steps[place:]))
        start = time.monotonic()
        run_step(step)
        state.finish(step, seconds=round(time.monotonic() - start, 1))


def run_step(step: Step, environment: Mapping[str, str] | None = None) -> None:
    """Run a step, whether it is done or not; `environment` is added to that of its commands."""
    run_commands(step, environment)
    if step.after is not None:
        step.after()
    if missing := [path for path in step.outputs if not path.exists()]:
        raise StepError(f"{step.name} ended well, but did not write {missing[0]}.")


def run_commands(step: Step, environment: Mapping[str, str] | None = None) -> None:
    """Run the commands of a step side by side; stop them, and all that they started, if one fails or we are stopped."""
    commands = step.argv() if callable(step.argv) else step.argv
    if not commands:
        return
    processes: list[subprocess.Popen[bytes]] = []
    with ExitStack() as files:
        log = files.enter_context(step.log.open("ab"))
        output = log if step.out is None else files.enter_context(step.out.open("wb"))
        log.writelines(f"$ {as_typed(each.words) if each.gpus is None else each}\n".encode() for each in commands)
        log.flush()
        begin = log.tell()
        watched = nullcontext(lambda _: None) if step.watch is None else step.watch()
        with watched as tick, _stopping(processes, step.saves):
            for each in commands:
                try:
                    variables = each.environment(environment or {})
                    begun = start_process(each.words, output, variables, log, step.cwd)
                except OSError:
                    program = Path(each.words[0]).name
                    advice = "scripts/setup.sh train brings what training needs."
                    raise StepError(f"{program} is not installed: {advice}") from None
                processes.append(begun)
            while True:
                tick(processes)
                codes = [process.poll() for process in processes]
                if None not in codes or any(codes):
                    break
                time.sleep(_PAUSE)
            tick(processes)
    for each, code in zip(commands, codes, strict=True):
        if code:
            name = Path(each.words[0]).name
            raise StepError(
                f"{name} failed: {_reason(step.log, begin, name, code)}; all of its output is in {step.log}."
            )


@contextmanager
def _stopping(processes: "Sequence[subprocess.Popen[bytes]]", saves: bool) -> Iterator[None]:
    """Stop in the end what still runs."""
    try:
        yield
    finally:
        if saves and any(process.poll() is None for process in processes):
            note("Stopping: the update, or the validation, that runs is finished and saved. Ctrl-C ends it at once.")
            stop_processes(processes, signal.SIGINT, _DAY)
        else:
            stop_processes(processes)


def _reason(log: Path, begin: int, name: str, code: int) -> str:
    """Return the last error of a log in words."""
    with log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - _TAIL))
        lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    if code < 0:
        return f"signal {-code} killed it, perhaps for lack of memory"
    for line in reversed(lines):
        if (match := _ERROR.match(line.removeprefix(f"{name}: "))) and match[2]:
            told = match[2] if match[1] in ("UserError", "Error", "error") else f"{match[1]}: {match[2]}"
            return told.rstrip(".")
    return lines[-1].rstrip(".") if lines else f"it ended with status {code}"
