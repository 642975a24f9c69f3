"""Text inside Markdown."""

import re
from shlex import quote


def plain(text: str) -> str:
    """Escape a text, on one line, so that Markdown and HTML show it unchanged."""
    # A name of a file may hold bytes that are no UTF-8, and line breaks.
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    # An underscore inside a word is one.
    escaped = re.sub(
        r"[\\`*\[\]~$]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", line.replace("&", "&amp;").replace("<", "&lt;")
    )
    # What makes a line a heading, a list or a rule.
    return re.sub(r"^(?:[#+=>-]|\d+(?=[.)]))", _escaped_mark, escaped)


def shell_word(text: str) -> str:
    """Quote a text for a shell, on one line, so that it cannot end a block of code."""
    if text.isprintable():
        return quote(text)
    # Python and bash escape alike; with both kinds of quotes inside, Python chooses single ones.
    return f"${(text + chr(34))!r}"[:-2] + "'"


def _escaped_mark(match: re.Match[str]) -> str:
    # A number stays; the mark behind it is escaped.
    return f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}"
