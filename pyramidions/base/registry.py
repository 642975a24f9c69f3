"""A named table of interchangeable parts: one per axis of the architecture."""

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Generic, TypeVar, cast, get_type_hints

from pyramidions.base.arguments import checked
from pyramidions.base.errors import UserError
from pyramidions.base.parts import MissingPartError, import_installed

Part = TypeVar("Part")
Maker = TypeVar("Maker", bound=Callable[..., Any])


class Registry(Generic[Part]):
    """Parts of one axis by name. The annotations of a part's arguments say what its options may be."""

    def __init__(self, axis: str) -> None:
        self.axis = axis
        self._makers: dict[str, Callable[..., Part]] = {}

    def register(self, name: str) -> Callable[[Maker], Maker]:
        """Return a decorator that files a class, or a function that says which class it makes, under ``name``.

        From then on its arguments are `checked`. A part of another package than this has the name of that package
        before its own, so that the files of a model say what must be imported: ``my_parts.gated_topk``.
        """

        def add(maker: Maker) -> Maker:
            package = maker.__module__.partition(".")[0]
            full = name if package == __name__.partition(".")[0] else f"{package}.{name}"
            if full in self._makers:
                raise ValueError(f"{self.axis} {full!r} is registered twice.")
            made: Any = checked(maker) if not inspect.isclass(maker) or inspect.isfunction(maker.__init__) else maker
            self._makers[full] = made
            return cast(Maker, made)

        return add

    @property
    def names(self) -> tuple[str, ...]:
        """All registered names, sorted."""
        return tuple(sorted(self._makers))

    def __contains__(self, name: object) -> bool:
        """Return whether a part has this name; modules that are installed are imported if none has."""
        if name not in self._makers:
            import_installed()
        return name in self._makers

    def require(self, name: str, subject: str, *others: str) -> None:
        """Refuse a name that no part has and that is not among ``others``; errors call it ``subject``.

        A MissingPartError says that the part is of a module that was not imported.
        """
        if name in self._makers or name in others or name in self:
            return
        module, dot, _ = name.rpartition(".")
        if dot and module not in sys.modules:
            raise MissingPartError(
                f"{subject} is {name!r}, a part of the module {module}, which was not imported: give its folder by "
                "--user-dir (in Python: `load_parts`), or install it."
            )
        raise UserError(f"{subject} must be one of {', '.join((*others, *self.names))}, but is {name!r}.")

    def _maker(self, name: str) -> Callable[..., Part]:
        if name not in self._makers:
            self.require(name, self.axis)
        return self._makers[name]

    def __getitem__(self, name: str) -> type[Part]:
        """Return the class of the part ``name``."""
        maker = self._makers.get(name) or self._maker(name)
        made: Any = maker if inspect.isclass(maker) else get_type_hints(maker)["return"]
        return cast("type[Part]", made)

    def arguments(self, name: str) -> dict[str, inspect.Parameter]:
        """Return the arguments of the part ``name``: its options, and what the model gives it."""
        return _arguments_of(self._maker(name))

    def build(self, name: str, options: Mapping[str, Any], **given: Any) -> Part:
        """Make a part of the options that a user chose, and of what the model knows, where the part names it.

        A UserError names an unknown part or option, a missing one, or one that is not as its annotation says.
        """
        maker, chosen = self._maker(name), dict(options)
        arguments = _arguments_of(maker)
        part = f"{maker.__name__} ({self.axis} {name!r})"
        for key in options:
            if key not in arguments or key in given:
                known = [key for key in arguments if key not in given]
                raise UserError(f"{part} has no option {key!r}; it knows {', '.join(known) if known else 'none'}.")
        for key, argument in arguments.items():
            if key in given:
                chosen[key] = given[key]
            elif key not in options and argument.default is argument.empty:
                raise UserError(f"{part} needs the option {key!r}.")
        return maker(**chosen)


@cache
def _arguments_of(maker: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    # A class without an __init__ of its own takes nothing, though its signature says *args, **kwargs.
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {key: value for key, value in inspect.signature(maker).parameters.items() if value.kind in named}
