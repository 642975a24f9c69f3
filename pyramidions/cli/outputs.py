"""What a command may write to, checked before the work: nothing of the user's is lost to a slip of the keyboard."""

from collections.abc import Iterable
from pathlib import Path

from pyramidions.errors import UserError

# How a file of each kind begins; an output replaces an older one of its kind, and nothing else.
_BEGINNINGS = {
    "a JSON file": (b"{", b"["),
    "a checkpoint": (b"PK\x03\x04",),
    "a .png file": (b"\x89PNG",),
    "a .svg file": (b"<?xml", b"<svg"),
    "a CSV file with our columns": (b"run,",),
}


def check_output(option: str, path: Path | None, kind: str, inputs: Iterable[Path] = ()) -> None:
    """Refuse to write where it would fail, or where something else would be lost.

    Args:
        option: its name, for the error.
        path: where it points; nothing is checked if None.
        kind: what is written, by a name above.
        inputs: what the command reads.

    Raises:
        UserError: a folder, a place in no folder, one of the inputs, or a file of another kind.
    """
    if path is None:
        return
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UserError(f"{option} must be a file in a folder that exists, but is {path}.")
    if path.resolve() in [each.resolve() for each in inputs]:
        raise UserError(f"{option} must not replace one of the inputs, but is {path}.")
    # A pipe or a device is written as it is.
    if path.is_file():
        with path.open("rb") as file:
            found = file.read(16).lstrip()
        if found and not found.startswith(_BEGINNINGS[kind]):
            raise UserError(f"{option} must not replace a file of another kind, but {path} is not {kind}.")
