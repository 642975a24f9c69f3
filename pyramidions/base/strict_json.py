"""JSON: how our files have it, and one kind of error for everything that is wrong with it from outside."""

import json
import math
from typing import Any

_DIGITS = 18  # of a whole number: it fits into 64 bits


class NumberError(ValueError):
    """JSON holds a number that is refused."""


def as_json_bytes(values: Any) -> bytes:
    """Return JSON as our files have it: each value on a line of its own."""
    return (json.dumps(values, indent=1) + "\n").encode()


def parse_json(text: str | bytes) -> Any:
    """Read JSON, as bytes in UTF-8, of finite numbers only; a ValueError is a clause that says what is wrong."""
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 (byte {error.start + 1})") from None
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def _refused(constant: str) -> float:
    raise NumberError(f"it holds {constant}, and numbers must be finite")


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refused(number[:20])


def _whole(number: str) -> int:
    if len(number.lstrip("-")) > _DIGITS:
        raise NumberError(f"it holds a whole number of more than {_DIGITS} digits")
    return int(number)
