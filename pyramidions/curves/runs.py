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
    """Return a name for each run: the end of its path, as short as tells it from the others.

    Args:
        runs: logs and folders; train.log is called after its folder.
    """
    parts = [_parts(run) for run in runs]
    while len(parts) > 1 and len({part[-1] for part in parts}) == 1 and all(len(part) > 1 for part in parts):
        parts = [part[:-1] for part in parts]
    names = [_shown(_shortest(part, [other for other in parts if other is not part])) for part in parts]
    return names if len(set(names)) == len(names) else [_shown(str(run)) for run in runs]


def _parts(run: Path) -> tuple[str, ...]:
    path = Path(os.path.abspath(run))  # noqa: PTH100  (resolves `..` and keeps the names of links)
    if run.is_file():
        path = path.parent if path.name == _USUAL else path.with_suffix("")
    return path.parts


def _shortest(parts: tuple[str, ...], others: list[tuple[str, ...]]) -> str:
    ends = (parts[-length:] for length in range(1, len(parts)))
    return "/".join(next((end for end in ends if all(other[-len(end) :] != end for other in others)), parts))


def _shown(name: str) -> str:
    """Return a name as one line of valid UTF-8."""
    text = os.fsencode(name).decode(errors="replace")
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
