"""Libraries that a base install does not bring."""

import shlex
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from typing import Any

from pyramidions.base.errors import UserError


def optional_library(name: str, user: str, *parts: str, extra: str = "pretrained") -> Any:
    """Import a library of an extra when it is needed."""
    try:
        module = import_module(name)
        for part in parts:
            import_module(f"{name}.{part}")
    except ModuleNotFoundError:
        raise UserError(_missing(name, user, extra)) from None
    return module


def without_torch(error: ModuleNotFoundError, user: str) -> ModuleNotFoundError:
    """Return the error of an import, which says what to install if torch is missing."""
    return error if error.name != "torch" else ModuleNotFoundError(_missing("torch", user, "torch"), name="torch")


def stand_in(name: str, library: str) -> type:
    """Return a class in place of a public name whose library is missing: Python can import it, and a use is refused."""

    def refuse(*_: Any, **__: Any) -> Any:
        optional_library(library, f"`{name}`", extra=library)

    def attribute(_: type, asked: str) -> Any:
        # Python itself asks for names with underscores, and must hear that there are none.
        if asked.startswith("_"):
            raise AttributeError(asked)
        refuse()

    return type("_StandIn", (type,), {"__call__": refuse, "__getattr__": attribute})(name, (), {})


def _missing(name: str, user: str, extra: str) -> str:
    return f"{user} needs the library {name}, which is not installed: {what_brings(name, extra)}."


def what_brings(name: str, extra: str) -> str:
    """Return a clause with the command that installs a library and the others of its extra.

    It names them, since no package index has an extra of ours.
    """
    lines: list[str] = []
    with suppress(PackageNotFoundError):
        lines = requires("pyramidions") or []
    needed = [line.partition(";")[0].strip() for line in lines if f'extra == "{extra}"' in line]
    clause = f"`pip install {shlex.join(needed or [name])}` brings it"
    return f"{clause}; the CPU build that pytorch.org names saves several GB of CUDA" if name == "torch" else clause
