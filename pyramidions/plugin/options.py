"""The options of tasks and criterions: each is declared once, with its default, its meaning and its rule."""

from dataclasses import field, fields
from typing import Any, Protocol

from pyramidions.base.arguments import flag_of
from pyramidions.base.errors import UserError

# Where fairseq files the dataclass of what it registers.
_OPTIONS = "__dataclass"


class Rule(Protocol):
    """What a value may be, such as a `Range`."""

    def rule(self, value: Any) -> str | None:
        """Return the rule that a value breaks; None if it breaks none."""


def option(default: Any, meaning: str, rule: Rule | None = None) -> Any:
    """Return the field of an option; ``meaning`` is its help."""
    return field(default=default, metadata={"help": meaning, "rule": rule})


def check_options(kind: type, given: Any) -> None:
    """Check the options of a task or criterion."""
    for each in fields(getattr(kind, _OPTIONS)):
        rule, value = each.metadata.get("rule"), getattr(given, each.name, None)
        if rule is not None and value is not None and (broken := rule.rule(value)) is not None:
            raise UserError(f"{flag_of(each.name)} must be {broken}, but is {value!r}.")
