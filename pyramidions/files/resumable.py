"""A file of lines that a later run can resume."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from pyramidions.base.errors import UserError
from pyramidions.files.atomic import lock, named_by, sync, sync_folder, write_file
from pyramidions.files.bounded import real_path


class ResumableFile:
    """Appends lines; those before the last `commit`, of so many ``inputs``, outlive a kill with its ``facts``."""

    def __init__(self, file: BinaryIO, progress: Path, settings: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        self.inputs: int = found["inputs"]
        self.facts: dict[str, Any] = found["facts"]
        self._file = file
        self._progress = progress
        self._settings = settings
        self.is_discarded = False
        file.truncate(found["bytes"])
        file.seek(found["bytes"])

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield the JSON values of the lines so far."""
        end = self._file.tell()
        self._file.seek(0)
        for line in self._file:
            try:
                yield dict(json.loads(line))
            except (ValueError, TypeError, RecursionError):
                lines = self._progress.with_suffix(".partial")
                raise UserError(f"{lines} is damaged: remove it and {self._progress.name}, and begin again.") from None
        self._file.seek(end)

    def write(self, line: str) -> None:
        """Append a line, given without its end."""
        self._file.write(f"{line}\n".encode())

    def commit(self, inputs: int, facts: Mapping[str, Any]) -> None:
        """Put all lines, of so many inputs, on the disk; a later run gets the ``facts``, values that JSON holds."""
        sync(self._file)
        known = {"settings": self._settings, "inputs": inputs, "bytes": self._file.tell(), "facts": facts}
        write_file(self._progress, json.dumps(known).encode())
        self.inputs = inputs

    def discard(self) -> None:
        """Leave what was at the path, and nothing beside it."""
        self.is_discarded = True


@contextmanager
def resumable_file(path: Path, settings: Mapping[str, Any], resume: bool) -> Iterator[ResumableFile]:
    """Write a file that takes the place of `path` when the block ends without an error.

    The lines stand in `path`.partial until then, and `path`.progress says which settings they were made with. After an
    error or a kill, both stay, unless nothing was committed. With ``resume`` and the same settings, a run goes on
    behind the lines that an interrupted one left; without it, such lines are refused.
    """
    target = real_path(path)
    partial, progress = (target.with_name(f"{target.name}.{end}") for end in ("partial", "progress"))
    with named_by(path, partial):
        partial.touch()
        with partial.open("r+b") as file:
            try:
                lock(file)
            except BlockingIOError:
                raise UserError(f"Another process is writing {path} at this moment.") from None
            # Whoever held it before may have renamed or removed it.
            if not (partial.exists() and os.path.samestat(os.fstat(file.fileno()), partial.stat())):
                raise UserError(f"Another process wrote {path} at this moment: run the command again.")
            is_left = progress.exists()
            if is_left and not resume:
                raise UserError(
                    f"{partial} holds what an interrupted run has done: go on with --resume, or remove the file "
                    f"{progress.name} beside it to begin again."
                )
            found = _known(progress, settings, file) if is_left else {"inputs": 0, "bytes": 0, "facts": {}}
            writer = ResumableFile(file, progress, settings, found)
            try:
                yield writer
                sync(file)
                partial.unlink() if writer.is_discarded else partial.replace(target)
                progress.unlink(missing_ok=True)
            except BaseException:
                if not writer.inputs:
                    partial.unlink(missing_ok=True)
                    progress.unlink(missing_ok=True)
                raise
    sync_folder(target.parent)


def _known(progress: Path, settings: Mapping[str, Any], file: BinaryIO) -> dict[str, Any]:
    """Return what an interrupted run noted, if it had the same settings."""
    try:
        found = json.loads(progress.read_bytes())
        theirs, sizes = dict(found["settings"]), (found["inputs"], found["bytes"])
        if not all(isinstance(size, int) for size in sizes) or not isinstance(found["facts"], dict):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UserError(f"{progress} is damaged: remove it, and begin again without --resume.") from None
    # As JSON, so that lists and tuples are alike.
    ours = json.loads(json.dumps(settings))
    for name in {**theirs, **ours}:
        if theirs.get(name) != ours.get(name):
            values = f"{_said(theirs.get(name))} then, {_said(ours.get(name))} now"
            raise UserError(f"--resume needs the settings of the interrupted run, but {name} differs: {values}.")
    if not 0 <= found["bytes"] <= os.fstat(file.fileno()).st_size:
        raise UserError(f"{progress} does not fit the lines beside it: remove it, and begin again without --resume.")
    return dict(found)


def _said(value: object) -> str:
    return "none" if value is None else str(value)
