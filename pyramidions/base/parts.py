"""Parts of a user's own: modules that register them, in a folder or installed."""

import os
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from pyramidions.base.arguments import checked
from pyramidions.base.errors import UserError

#: Distributions name modules with parts under it.
ENTRY_POINTS = "pyramidions.parts"

#: The folders that `load_parts` imported, for processes that begin without them.
loaded: list[str] = []


class MissingPartError(UserError):
    """A part is of a module that was not imported."""


@checked
def load_parts(user_dir: str | Path) -> None:
    """Import a folder with parts of your own, as fairseq imports its ``--user-dir``.

    The names of its parts begin with that of the folder: ``my_parts.gated_topk``.

    Args:
        user_dir: a package that registers them.

    Raises:
        UserError: it is no package, or another module has its name.
    """
    # As in fairseq, a link has a name of its own.
    path = Path(os.path.abspath(user_dir))  # noqa: PTH100
    if not (path / "__init__.py").is_file() or "." in path.name:
        raise UserError(f"`user_dir` must be a folder with __init__.py and no dot in its name, but is {user_dir}.")
    if path.name not in sys.modules:
        # It stays there: the folder may hold modules that are imported later.
        sys.path.insert(0, str(path.parent))
    if str(path) not in getattr(import_module(path.name), "__path__", ()):
        raise UserError(f"`user_dir` must have a name that no other module has, but is {user_dir}.")
    if str(path) not in loaded:
        loaded.append(str(path))


@cache
def import_installed() -> None:
    """Import the modules that installed distributions name under `ENTRY_POINTS`, once."""
    for each in entry_points(group=ENTRY_POINTS):
        try:
            each.load()
        except Exception as error:
            raise UserError(f"The installed parts {each.value} cannot be imported: {error}.") from error
