"""Makes a folder part by part, whole or not at all.

While it is being made, a hidden file says so of each finished part, such as a split; the next run takes it over.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.data.folder import PreparedFolder, refuse_to_lose
from pyramidions.data.manifest import matches_manifest
from pyramidions.files.atomic import atomic_folder, write_file
from pyramidions.files.bounded import file_hash


def make_folder(
    folder: PreparedFolder,
    is_same: Callable[[], bool],
    what: str,
    overwrite: bool,
    key: str,
    fill: Callable[[Any], None],
) -> bool:
    """Make a folder, whole or not at all, unless it holds the same already, undamaged.

    With the same ``key``, the work of an interrupted run is continued. Returns whether the folder was made.
    """
    path = folder.path
    if path.exists() and any(path.iterdir()):
        if not is_same():
            if not overwrite:
                raise UserError(f"{path} holds other {what} or settings; give --overwrite to replace it.")
        elif matches_manifest(folder):
            return False
        refuse_to_lose(path)
    try:
        with atomic_folder(path, key) as partial:
            fill(type(folder)(partial))
    except OSError as error:
        kept = "; the old folder is unchanged" if path.exists() else ""
        raise UserError(f"Writing {path} failed ({error.strerror or error}){kept}.") from error
    return True


def part(
    folder: Path,
    name: str,
    what: str,
    make: Callable[[], dict[str, Any]],
    files: Callable[[], Iterable[Path]],
    made_with: str = "",
) -> dict[str, Any]:
    """Return the facts about a part of a partial folder, which is made unless an interrupted run made it.

    ``make`` writes and syncs the files, and returns facts about them that JSON holds; ``what`` is for a note ("the
    pieces that were trained"), and ``made_with`` is what else decides about the files, such as the hash of a
    vocabulary.
    """
    found = finished_part(folder, name, made_with)
    if found is not None:
        note(f"takes {what} before")
        return found
    found = make()
    finish_part(folder, name, files(), found, made_with)
    return found


def finish_part(folder: Path, name: str, files: Iterable[Path], facts: dict[str, Any], made_with: str = "") -> None:
    """Note that files of a partial folder are whole and synced."""
    about = {"made_with": made_with, "files": {path.name: file_hash(path) for path in files}, "facts": facts}
    write_file(_part(folder, name), json.dumps(about).encode())


def finished_part(folder: Path, name: str, made_with: str = "") -> dict[str, Any] | None:
    """Return the facts about a finished part; None if there is none, it is damaged, or was made with something else."""
    path = _part(folder, name)
    if not path.is_file():
        return None
    try:
        about = json.loads(path.read_bytes())
        files, facts = dict(about["files"]), dict(about["facts"])
        if all(file_hash(folder / file) == digest for file, digest in files.items()):
            return facts if about["made_with"] == made_with else None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    note(f"{name} of the interrupted run is damaged: that part is done anew")
    return None


def _part(folder: Path, name: str) -> Path:
    return folder / f".{name}.part"
