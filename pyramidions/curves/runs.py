"""Where the log of a run lies, and what to call the run."""

import os
from collections.abc import Sequence
from pathlib import Path

from pyramidions.curves.training_log import is_training_log
from pyramidions.errors import UserError

_USUAL = "train.log"  # as `pyramidions reproduce` calls the log of a training
_NAMED = 5  # logs that an error names
_WRONG = "RUN must be a log of fairseq-train or a folder with one, but"
_LINE = "line of training or validation with num_updates"


def find_log(run: Path) -> Path:
    """Return the log of a run.

    Args:
        run: a log, or a folder: train.log in it, else the only log of a training in it, else the only one below it.

    Raises:
        UserError: there is no log of a training, or several.
    """
    if run.is_file():
        if not is_training_log(run):
            raise UserError(f"{_WRONG} {run} has no {_LINE} (--log-format none writes none).")
        return run
    if not run.is_dir():
        raise UserError(f"{_WRONG} {run} does not exist.")
    for pattern in (_USUAL, "*.log", "**/*.log"):
        found = [path for path in sorted(run.glob(pattern)) if path.is_file() and is_training_log(path)]
        if len(found) > 1:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            named = f"{', '.join(map(str, found[:_NAMED]))}{more}"
            raise UserError(f"RUN must hold one log of a training, but {run} holds {len(found)}: choose among {named}.")
        if found:
            return found[0]
    raise UserError(f"{_WRONG} no *.log in {run} has a {_LINE}.")


def run_names(runs: Sequence[Path]) -> list[str]:
    """Return a name for each run: its path below the folder that all share, and the last part of a single one.

    Args:
        runs: logs and folders; train.log is called after its folder.
    """
    paths = [os.path.abspath(run) for run in runs]  # noqa: PTH100  (resolves `..` and keeps the names of links)
    named = [path.removesuffix(f"/{_USUAL}").removesuffix(".log") for path in paths]
    if len(set(named)) < len(named):
        return [_shown(str(run)) for run in runs]
    shared = os.path.commonpath(named) if len(named) > 1 else os.path.dirname(named[0])  # noqa: PTH120
    return [_shown(os.path.relpath(name, shared) if name != shared else Path(name).name) for name in named]


def _shown(name: str) -> str:
    """Return a name as one line of valid UTF-8."""
    text = os.fsencode(name).decode(errors="replace")
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
