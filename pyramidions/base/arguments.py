"""Checks arguments by their annotations, at the border: of public functions and classes, options of parts, settings."""

import errno
import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, Unpack, get_args, get_origin, get_type_hints

from pyramidions.base.errors import UserError

_MOST = 2**31 - 1
_LONGEST_PATH = 4096
Checked = TypeVar("Checked", bound=Callable[..., Any])


class Range(NamedTuple):
    """The numbers that an annotated argument may be: ``Annotated[int, Range(1)]``."""

    # least, most: the smallest and the largest one.
    least: float
    most: float = math.inf
    open: bool = False  # ``least`` itself is refused
    below: bool = False  # ``most`` itself is refused

    def rule(self, value: Any) -> str | None:
        """Return the rule that a number breaks; None if it breaks none."""
        least = value > self.least or (value == self.least and not self.open)
        if least and (value < self.most or (value == self.most and not self.below)):
            return None
        from_below = f"{'above' if self.open else 'at least'} {self.least:g}"
        if self.below:
            return f"{from_below} and below {self.most:,.15g}"
        if self.open:
            return from_below + ("" if self.most == math.inf else f" and at most {self.most:g}")
        unbounded = self.most == math.inf or (value < self.least and self.most == _MOST)
        return from_below if unbounded else f"from {self.least:,.10g} to {self.most:,.10g}"


class EveryOther(NamedTuple):
    """Every other number from ``least`` on: the even ones, or the odd ones."""

    least: int

    def rule(self, value: int) -> str | None:
        """Return the rule that a number breaks; None if it breaks none."""
        fits = value >= self.least and (value - self.least) % 2 == 0
        return None if fits else f"{'odd' if self.least % 2 else 'even'} and at least {self.least}"


class OneOf(NamedTuple):
    """The texts that an annotated argument may be: ``Annotated[str, OneOf(("soft", "hard"))]``."""

    names: tuple[str, ...]

    def rule(self, value: str) -> str | None:
        """Return the rule that a text breaks; None if it breaks none."""
        return None if value in self.names else f"one of {', '.join(self.names)}"


#: A number of things. A larger one is a mistake, and does not fit into 32 bits, in which C computes.
Count = Annotated[int, Range(1, _MOST)]
CountOrZero = Annotated[int, Range(0, _MOST)]
#: A part of a whole, from none to all of it.
Share = Annotated[float, Range(0, 1)]


class Broken(NamedTuple):
    """A rule that a value breaks."""

    place: str  # where the value stands in the argument, such as "[3]"; empty where it is the argument itself
    rule: str  # what it must be, such as "a whole number"
    value: Any  # what it is

    @property
    def said(self) -> str:
        """What follows the name of the value in an error."""
        hint = ": put it in brackets" * (isinstance(self.value, str) and self.rule.startswith("a list of texts"))
        hint += ": give what the file holds, or use what reads files" * (
            isinstance(self.value, os.PathLike) and self.rule.startswith("a text")
        )
        return f"{self.place and f'{self.place} '}must be {self.rule}, but is {shown(self.value)}{hint}"


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value has the annotated type; a bool is no number, an integer is a float, NaN is none."""
    return broken(value, hint) is None


def rule_of(hint: Any) -> str:
    """Return how an error calls an annotated type."""
    origin, of = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return rule_of(of[0])
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(rule_of, of)))
    if origin is Literal:
        return f"one of {', '.join(of)}"
    if origin is None:
        names = {int: "a whole number", float: "a number", str: "a text", bool: "True or False", NoneType: "None"}
        return names.get(hint) or _with_article(hint)
    if origin is tuple or issubclass(origin, Mapping):
        return "a tuple" if origin is tuple else "a mapping"
    if not issubclass(origin, Iterable):
        return "a function"
    # "a list of whole numbers"
    each = rule_of(of[0]).split(" or ") if of else []
    return "a list of " + " or ".join(f"{one.removeprefix('a ').removeprefix('an ')}s" for one in each)


def _with_article(kind: type) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIOaeio' else 'a'} {kind.__name__}"


def check(values: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Check values by the annotations of their names; a UserError names one of another type, or out of its range."""
    for name, value in values.items():
        if name not in hints:
            continue
        # The layers of a model have the same numbers, which are checked once.
        is_number = type(value) in (int, float, bool, NoneType)
        try:
            wrong = (_broken_by_number if is_number else broken)(value, hints[name])
        except TypeError:  # what a part's author says beside a type may have no hash
            wrong = broken(value, hints[name])
        if wrong is not None:
            raise UserError(f"`{name}{wrong.place}` {wrong._replace(place='').said}.")


def check_fields(record: Any) -> None:
    """Check the fields of a named tuple or of a dataclass, as `check` does."""
    hints = get_type_hints(type(record), include_extras=True)
    check({name: getattr(record, name) for name in hints}, hints)


def checked(function: Checked) -> Checked:
    """Check the arguments of a function, or of a dataclass, by their annotations before each call, as `check` does."""
    if inspect.isclass(function):
        function.__init__ = checked(function.__init__)  # type: ignore[method-assign]
        return function
    signature = inspect.signature(function)
    further = [each.name for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD]
    hints = functools.cache(functools.partial(_hints, function, further))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            # Python says it best.
            return function(*args, **kwargs)
        for name in further:
            given |= given.pop(name, {})
        if unknown := given.keys() - signature.parameters.keys() - hints().keys():
            raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {min(unknown)!r}")
        check(given, hints())
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _hints(function: Callable[..., Any], further: Iterable[str]) -> dict[str, Any]:
    """Return the annotations of all arguments, those of ``**options: Unpack[Options]`` by their own names."""
    arguments = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    hints = get_type_hints(SimpleNamespace(__annotations__=arguments), function.__globals__, include_extras=True)
    for name in further:
        if get_origin(options := hints.pop(name, None)) is Unpack:
            hints |= get_type_hints(get_args(options)[0], include_extras=True)
    return hints


def broken(value: Any, hint: Any) -> Broken | None:
    """Return the rule of an annotation that a value breaks; None if it breaks none."""
    origin, of = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _broken_rule(value, *of)
    if Path in (hint, *of) and isinstance(value, str | Path) and _is_too_long(value):
        return Broken("", "a path whose names the system allows", value)
    if origin in (Union, UnionType):
        return _broken_choice(value, hint, of)
    if not _is_of_type(value, hint, origin, of):
        return Broken("", rule_of(hint), value)
    for place, held, its_hint in _held(value, origin, of):
        if (wrong := broken(held, its_hint)) is not None:
            return wrong._replace(place=f"[{place!r}]{wrong.place}")
    return None


def _broken_rule(value: Any, kind: Any, *rules: Any) -> Broken | None:
    """Return what a value breaks of an annotated type: the type, or a rule beside it."""
    wrong = broken(value, kind)
    # NaN is a number out of any range.
    if wrong is not None and not (kind is float and isinstance(value, float)):
        return wrong
    for each in rules:
        if hasattr(each, "rule") and (rule := each.rule(value)) is not None:
            return Broken("", rule, value)
    return wrong


def _broken_choice(value: Any, hint: Any, choices: tuple[Any, ...]) -> Broken | None:
    """Return what a value breaks of several types, None if it has one of them."""
    closest: Broken | None = None
    for choice in choices:
        if (wrong := broken(value, choice)) is None:
            return None
        # A number out of its range is called so, and so is a list with a wrong value.
        if closest is None and (wrong.place or wrong.rule != rule_of(choice)):
            closest = wrong
    return closest or Broken("", rule_of(hint), value)


def _is_too_long(path: str | Path) -> bool:
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG
    except ValueError:
        return False  # a zero byte, which no file's name has
    return False


_broken_by_number = functools.lru_cache(maxsize=1024, typed=True)(broken)


def _is_of_type(value: Any, hint: Any, origin: Any, of: tuple[Any, ...]) -> bool:
    if hint is Any:
        return True
    if hint is int:
        return not isinstance(value, bool) and isinstance(value, Integral)
    if hint is float:
        return not isinstance(value, bool) and isinstance(value, Real) and _is_finite(value)
    if origin is Literal:
        return isinstance(value, str) and value in of
    if origin is None:
        return isinstance(value, hint)
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(of)
    if not issubclass(origin, Iterable) or issubclass(origin, Mapping):
        return isinstance(value, origin)
    # The letters of a text, the keys of a mapping and the names of a table's columns are no list.
    return isinstance(value, origin) and not isinstance(value, str | bytes | Mapping) and getattr(value, "ndim", 1) == 1


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _held(value: Any, origin: Any, of: tuple[Any, ...]) -> Iterable[tuple[Any, Any, Any]]:
    """Return what a value holds, with the place and the annotation of each."""
    if origin is tuple:
        return zip(range(len(of)), value, of, strict=True)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return [
            (key, held, hint) for pair in value.items() for key, held, hint in zip(pair[:1] * 2, pair, of, strict=True)
        ]
    # An iterator is not read here: what it gives would be lost for the function.
    listed = isinstance(origin, type) and (isinstance(value, Sequence) or hasattr(value, "ndim"))
    value = value[:: max(1, len(value) - 1)] if isinstance(value, range) else value  # its ends say it
    return ((place, held, of[0]) for place, held in enumerate(value)) if listed and of else ()


def described(default: Any, meaning: str, rule: Range | EveryOther | OneOf | None = None) -> Any:
    """Return the field of an option or a config, with its help and with what its values may be."""
    return field(default=default, metadata={"help": meaning, "rule": rule})


def check_described(kind: Any, given: Any, spelled: Callable[[str], str]) -> None:
    """Refuse values that break the rules of the fields of a dataclass; ``spelled`` is how an error calls a field."""
    for each in fields(kind):
        rule, value = each.metadata.get("rule"), getattr(given, each.name, None)
        if rule is not None and value is not None and (wrong := rule.rule(value)) is not None:
            raise UserError(f"{spelled(each.name)} must be {wrong}, but is {shown(value)}.")


def flag_of(argument: str) -> str:
    """Return the flag of an argument: `--max-tokens` of `max_tokens`."""
    return f"--{argument.replace('_', '-')}"


def shown(value: Any) -> str:
    """Spell a value from outside for an error, a long one by its beginning."""
    value = value.item() if getattr(value, "ndim", None) == 0 else value  # of NumPy
    try:
        text = repr(value) if isinstance(value, str | bytes | int | float | None) else _with_article(type(value))
    except ValueError:
        text = "a number of thousands of digits"
    return text if len(text) <= 80 else f"{text[:80]}…"


def refuse_path(name: str, text: object, instead: str) -> None:
    """Refuse the path of a file where its text belongs; ``instead`` says what reads files."""
    if isinstance(text, str) and len(text) < _LONGEST_PATH and os.path.isfile(text):  # noqa: PTH113, never raises
        raise UserError(f"`{name}` must be a text, but {text} names a file: {instead}.")
