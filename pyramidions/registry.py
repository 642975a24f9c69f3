"""A named table of interchangeable parts: one per axis of the architecture."""

import inspect
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Part = TypeVar("Part")
Maker = TypeVar("Maker", bound=Callable[..., Any])


class Registry(Generic[Part]):
    """Parts of one axis by name.

    Args:
        axis: what the parts are, as error messages call it (``"self-attention"``).
    """

    def __init__(self, axis: str) -> None:
        self.axis = axis
        self._makers: dict[str, Callable[..., Part]] = {}

    def register(self, name: str) -> Callable[[Maker], Maker]:
        """Return a decorator that files a class, or a function that says which class it makes, under ``name``."""

        def add(maker: Maker) -> Maker:
            if name in self._makers:
                raise ValueError(f"{self.axis} {name!r} is registered twice.")
            self._makers[name] = maker
            return maker

        return add

    @property
    def names(self) -> tuple[str, ...]:
        """All registered names, sorted."""
        return tuple(sorted(self._makers))

    def _maker(self, name: str) -> Callable[..., Part]:
        if name not in self._makers:
            raise ValueError(f"{self.axis} must be one of {', '.join(self.names)}, but is {name!r}.")
        return self._makers[name]

    def __getitem__(self, name: str) -> type[Part]:
        """Return the class of the part ``name``."""
        maker = self._maker(name)
        made: Any = maker if inspect.isclass(maker) else get_type_hints(maker)["return"]
        return cast("type[Part]", made)

    def takes(self, name: str, argument: str) -> bool:
        """Return whether the part ``name`` has the argument ``argument``."""
        return argument in inspect.signature(self._maker(name)).parameters

    def build(self, name: str, options: Mapping[str, Any], **given: Any) -> Part:
        """Make the part ``name``.

        Args:
            name: a registered name.
            options: what the user chose; every key must be an argument of the part.
            given: what the model knows (``embed_dim``, ``dropout``, ...); a part takes the arguments that it names.

        Raises:
            ValueError: an unknown name or option, an option of the wrong type, or a missing one.
        """
        part = self._maker(name)
        # A class without an __init__ of its own takes nothing, though its signature says *args, **kwargs.
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        parameters = inspect.signature(part).parameters
        arguments = {key: value for key, value in parameters.items() if value.kind in named}
        known = [key for key in arguments if key not in given]
        for key in options:
            if key not in known:
                raise ValueError(
                    f"{part.__name__} ({self.axis} {name!r}) has no option {key!r}; "
                    f"it knows {', '.join(known) if known else 'none'}."
                )
        for key in known:
            if key not in options and arguments[key].default is inspect.Parameter.empty:
                raise ValueError(f"{part.__name__} ({self.axis} {name!r}) needs the option {key!r}.")
        hints = get_type_hints(part.__init__ if inspect.isclass(part) else part)
        for key, value in options.items():
            if not fits(value, hints.get(key, object)):
                raise ValueError(
                    f"The option {key!r} of {part.__name__} ({self.axis} {name!r}) must be of type "
                    f"{type_name(hints[key])}, but is {value!r}."
                )
        return part(**options, **{key: value for key, value in given.items() if key in arguments})


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value from JSON has the annotated type; a bool is no number, an integer is a float."""
    if get_origin(hint) in (Union, UnionType):
        return any(fits(value, choice) for choice in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is list:
        (of,) = get_args(hint)
        return isinstance(value, list) and all(fits(entry, of) for entry in value)
    if isinstance(value, bool):
        return hint in (bool, object)
    return isinstance(value, (int, float) if hint is float else hint)


def type_name(hint: Any) -> str:
    """Return how an error calls an annotated type."""
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) is list:
        return f"list of {type_name(get_args(hint)[0])}"
    return " or ".join(
        "null" if h is type(None) else type_name(h) if get_origin(h) else h.__name__
        for h in (get_args(hint) if get_origin(hint) else (hint,))
    )
