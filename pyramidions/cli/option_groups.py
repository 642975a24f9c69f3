"""Options that belong together."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import Any

import click


def option_group(*options: Callable[[Any], Any], name: str = "", kind: Any = None) -> Callable[[Any], Any]:
    """Return what gives a command some options.

    Args:
        options: of click.
        name: the argument that passes them all to the command; "" to pass each by its own name.
        kind: the named tuple or dataclass of that argument, whose fields are the names of the options; one that the
            command lacks has a default.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        found = command if kind is None else _gathering(command, name, kind)
        for option in reversed(options):
            found = option(found)
        return found

    return add


def _gathering(command: Callable[..., Any], name: str, kind: Any) -> Callable[..., Any]:
    @wraps(command)
    def gathered(*given: Any, **options: Any) -> Any:
        together = kind(**{field: options.pop(field) for field in signature(kind).parameters if field in options})
        return command(*given, **{name: together}, **options)

    return gathered


class Grouped(click.Command):
    """A command whose help groups its options by what they are for.

    Args:
        groups: the title of each group by the name of its first option.
    """

    def __init__(self, *args: Any, groups: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below the titles of their groups."""
        found: dict[str, list[tuple[str, str]]] = {}
        title = "Options"
        for param in self.get_params(ctx):
            title = self._groups.get(param.name or "", title)
            # Newer versions of click list arguments as well, though they have no help.
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                found.setdefault(title, []).append(record)
        for title, records in found.items():
            with formatter.section(title):
                formatter.write_dl(records)
