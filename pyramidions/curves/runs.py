"""Where the log of a run lies, and what to call the run."""

import os
from collections.abc import Sequence
from pathlib import Path

from pyramidions.curves.training_log import is_training_log
from pyramidions.errors import UserError

#: What `pyramidions reproduce` calls the log of a training.
_USUAL = "train.log"
_NAMED = 5  # logs that an error names


def find_log(run: Path) -> Path:
    """Return the log of a run.

    Args:
        run: a log, or a folder: train.log in it, else the only log of a training in it, else the only one below it.

    Raises:
        UserError: there is no log of a training, or several.
    """
    if run.is_file():
        if not is_training_log(run):
            raise UserError(
                f"RUN must be a log of fairseq-train or a folder with one, but {run} has no line of training or "
                "validation with num_updates (--log-format none writes none)."
            )
        return run
    if not run.is_dir():
        raise UserError(f"RUN must be a log of fairseq-train or a folder with one, but {run} does not exist.")
    if (run / _USUAL).is_file() and is_training_log(run / _USUAL):
        return run / _USUAL
    for pattern in ("*.log", "**/*.log"):
        found = [path for path in sorted(run.glob(pattern)) if path.is_file() and is_training_log(path)]
        if len(found) > 1:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            raise UserError(
                f"RUN must hold one log of a training, but {run} holds {len(found)}: choose among "
                f"{', '.join(map(str, found[:_NAMED]))}{more}."
            )
        if found:
            return found[0]
    raise UserError(
        f"RUN must be a log of fairseq-train or a folder with one, but no *.log in {run} has a line of training or "
        "validation with num_updates."
    )


def run_names(runs: Sequence[Path]) -> list[str]:
    """Return a name for each run: of its path, as few parts as tell it from the others.

    Args:
        runs: logs and folders; train.log is called after its folder.
    """
    parts = [_parts(run) for run in runs]
    while len(parts) > 1 and len({part[-1] for part in parts}) == 1 and all(len(part) > 1 for part in parts):
        parts = [part[:-1] for part in parts]
    names = [_shown(_shortest(part, [other for other in parts if other is not part])) for part in parts]
    return names if len(set(names)) == len(names) else [_shown(str(run)) for run in runs]


def _parts(run: Path) -> tuple[str, ...]:
    path = Path(os.path.abspath(run))  # noqa: PTH100  (what `..` means, with links as they are named)
    if run.is_file():
        path = path.parent if path.name == _USUAL else path.with_suffix("")
    return path.parts


def _shortest(parts: tuple[str, ...], others: list[tuple[str, ...]]) -> str:
    for length in range(1, len(parts)):
        if all(other[-length:] != parts[-length:] for other in others):
            return "/".join(parts[-length:])
    return "/".join(parts)


def _shown(name: str) -> str:
    """Return a name whose bytes are all UTF-8, and that is one line."""
    text = os.fsencode(name).decode(errors="replace")
    return "".join(character if character.isprintable() else "�" for character in text)
