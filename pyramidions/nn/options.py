"""Types of the options of parts. Registries check options before they make a part, so no part checks them again."""

from enum import Enum
from typing import Annotated, Any, get_args, get_origin

from pyramidions.base.arguments import EveryOther, Range
from pyramidions.base.registry import Registry

_MOST = 2**31 - 1


class Role(Enum):
    """What becomes of an option in a model of another size."""

    LENGTH = "positions of a text"
    DIVISOR = "divides `ffn_embed_dim`"


#: positions, such as those of a block
Length = Annotated[int, Range(1, _MOST), Role.LENGTH]
#: positions on both sides together, half of them on each
Window = Annotated[int, EveryOther(2), Role.LENGTH]
#: how many parts the width of a feed-forward part is cut into
Divisor = Annotated[int, Range(1, _MOST), Role.DIVISOR]
#: probability of dropping a value while training
Probability = Annotated[float, Range(0, 1, below=True)]
Positive = Annotated[float, Range(0, open=True)]
#: above 0 and below 1
Within = Annotated[float, Range(0, 1, open=True, below=True)]


def options_of(role: Role, registry: Registry[Any], kind: str) -> dict[str, Any]:
    """Return the options of a kind that have a role, by name, with their defaults."""
    arguments = registry.arguments(kind)
    return {name: each.default for name, each in arguments.items() if role in _said(each.annotation)}


def is_window(registry: Registry[Any], kind: str, option: str) -> bool:
    """Return whether an option of a kind is a `Window`."""
    return registry.arguments(kind)[option].annotation == Window


def _said(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()
