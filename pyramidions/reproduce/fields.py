"""Values of a JSON file from outside, checked one by one."""

import json
import reprlib
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pyramidions.errors import UserError

_MOST = 1e12  # seconds and the like: more is no measurement


class Interval(NamedTuple):
    """A value and the interval around it."""

    value: float
    low: float
    high: float


class Fields:
    """The fields of a JSON object in a file; whatever is not as it must be is an error that names file and field."""

    def __init__(self, path: Path, values: dict[str, Any], place: str = "") -> None:
        self._path = path
        self._values = values
        self._place = place

    @classmethod
    def read(cls, path: Path) -> "Fields":
        """Read a file."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict):
            raise UserError(f"{path} must hold one JSON object, but does not.")
        return cls(path, values)

    def refuse(self, name: str, rule: str, value: object) -> NoReturn:
        """Raise an error about a field."""
        raise UserError(f"{self._path}: `{self._place}{name}` must be {rule}, but is {reprlib.repr(value)}.")

    def _get(self, name: str) -> Any:
        if name not in self._values:
            raise UserError(f"{self._path} lacks `{self._place}{name}`.")
        return self._values[name]

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self._values.get(name) is not None

    def part(self, name: str) -> "Fields":
        """Return an object."""
        value = self._get(name)
        if not isinstance(value, dict):
            self.refuse(name, "an object", value)
        return Fields(self._path, value, f"{self._place}{name}.")

    def optional_part(self, name: str) -> "Fields | None":
        """Return an object, or None for null."""
        return None if self._get(name) is None else self.part(name)

    def number(self, name: str, least: float = 0, most: float = _MOST) -> float:
        """Return a number within limits, which are part of them."""
        value = self._get(name)
        if type(value) not in (int, float) or not least <= value <= most:
            self.refuse(name, f"a number from {least:g} to {most:g}", value)
        return float(value)

    def interval(self, middle: str, least: float = 0, most: float = _MOST) -> Interval:
        """Return a value with "low" and "high"."""
        value, low, high = (self.number(name, least, most) for name in (middle, "low", "high"))
        # A mean over documents may miss its bootstrap interval by the last digit.
        if low > high or not low - 1e-6 <= value <= high + 1e-6:
            self.refuse(middle, f"from `low` to `high`, {low} to {high}", value)
        return Interval(value, low, high)

    def count(self, name: str, least: int = 0) -> int:
        """Return a whole number."""
        value = self._get(name)
        if type(value) is not int or value < least:
            self.refuse(name, f"a whole number of at least {least}", value)
        return int(value)

    def counts(self, name: str) -> list[int]:
        """Return different whole numbers of at least 1."""
        values = self._get(name)
        if not isinstance(values, list) or any(type(v) is not int or v < 1 for v in values):
            self.refuse(name, "a list of whole numbers of at least 1", values)
        if len(set(values)) < len(values):
            self.refuse(name, "a list of different numbers", values)
        return list(values)

    def named_counts(self, name: str) -> dict[str, int]:
        """Return whole numbers by name."""
        part = self.part(name)
        return {key: part.count(key) for key in part._values}

    def text(self, name: str) -> str:
        """Return a line of text."""
        value = self._get(name)
        if not _is_line(value):
            self.refuse(name, "one line of text", value)
        return str(value)

    def named_texts(self, name: str) -> dict[str, str]:
        """Return lines of text by name; without those that are null."""
        values = self.part(name)._values
        for key, value in values.items():
            if not _is_line(key) or not (value is None or _is_line(value)):
                self.refuse(name, "lines of text by name", values)
        return {key: value for key, value in values.items() if value is not None}

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        """Return one of the choices."""
        value = self._get(name)
        if value not in choices:
            self.refuse(name, " or ".join(choices), value)
        return str(value)


def _is_line(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and value.strip() != ""
