"""Experiments of several commands: each is run once, and one that was interrupted is run again."""

import argparse
import json
import lzma
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pyramidions.files.processes import program


def step(work: Path, made: Path, name: str, *words: object) -> None:
    """Run a command unless what it makes is there.

    Args:
        work: folder of the experiment, which keeps the output of the command.
        made: file in it that the command makes.
        name: of the program.
        words: its arguments.
    """
    if made.exists():
        return
    command = program(name, *words)
    print(name, *command[1:], flush=True)
    log = work / f"{made.relative_to(work).as_posix().replace('/', '-')}.log"
    # What a training logged before it was interrupted stays.
    with log.open("a") as file:
        done = subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit(f"{name} failed; all of its output is in {log}.")


def check_settings(work: Path, args: argparse.Namespace, free: Collection[str]) -> None:
    """Make the folder of an experiment, and refuse one whose trainings had other arguments than ``args``.

    Args:
        work: the folder.
        args: of the command line.
        free: names of those that may differ, such as which models are trained.
    """
    work.mkdir(parents=True, exist_ok=True)
    kept = work / "settings.json"
    settings = {name: str(value) for name, value in vars(args).items() if name not in free}
    if not kept.exists():
        kept.write_text(json.dumps(settings))
    elif json.loads(kept.read_text()) != settings:
        sys.exit(f"{work} holds trainings with other arguments ({kept}); use another folder.")


def first_documents(path: str, count: int, made: Path) -> Path:
    """Write the first documents of a file of JSON lines to another one, and return that."""
    opened = lzma.open if path.endswith(".xz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        made.write_text("".join(line for _, line in zip(range(count), file, strict=False)), encoding="utf-8")
    return made


def logged(log: Path) -> list[dict[str, Any]]:
    """Return what ``fairseq-train --log-format json`` logged, line by line; most figures are text."""
    return [json.loads(line) for line in re.findall(r"\{\"epoch\".*\}", log.read_text())]
