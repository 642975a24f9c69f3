"""How results show themselves in Python and in notebooks."""

from collections.abc import Iterable
from html import escape
from typing import Any


def brief(result: Any, of: str) -> str:
    """Return a short repr of a result: its type, and the beginning of its `text`."""
    text = result.text if len(result.text) <= 80 else f"{result.text[:80]}…"
    return f"<{type(result).__name__} of {of}: {text!r}>"


def brief_model(model: Any) -> str:
    """Return a short repr of a model from disk, whose `network` would fill pages."""
    return f"<{type(model).__name__} of {sum(weight.numel() for weight in model.network.parameters()):,} parameters>"


def as_html(parts: Iterable[tuple[str, str]]) -> str:
    """Return what a notebook shows: texts, each below the heading of its section if that has one."""
    return "".join(f"{heading and f'<h4>{escape(heading)}</h4>'}<p>{escape(text)}</p>" for heading, text in parts)
