"""Libraries that a base install does not bring."""

from importlib import import_module
from typing import Any

from pyramidions.errors import UserError


def optional_library(name: str, user: str, *parts: str, extra: str = "pretrained") -> Any:
    """Import a library of an extra when it is needed.

    Args:
        name: of the library.
        user: what needs it, for the error.
        parts: modules of it to import as well.
        extra: of this package, which brings the library.

    Raises:
        UserError: it is not installed.
    """
    try:
        found = import_module(name)
        for part in parts:
            import_module(f"{name}.{part}")
    except ModuleNotFoundError:
        raise UserError(
            f"{user} needs the library {name}, which is not installed: pip install 'pyramidions[{extra}]' brings it."
        ) from None
    return found
