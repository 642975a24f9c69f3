"""What commands write: tables, and files that are checked before the work, so that a mistake overwrites nothing."""

import os
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import as_json_bytes
from pyramidions.files.bounded import real_path


def columns(rows: Iterable[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return rows of cells as lines with aligned columns: those named by ``left`` to the left, others to the right."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    form = "  ".join(f"{{:{'<' if n in left else '>'}{width}}}" for n, width in enumerate(widths))
    return [form.format(*row).rstrip() for row in cells]


def _is_text(begin: bytes) -> bool:
    if b"\0" in begin or begin.startswith(b"%PDF"):
        return False
    try:
        return bool(getincrementaldecoder("utf-8")().decode(begin))
    except UnicodeDecodeError:
        return False


def _json_from(*keys: str) -> Callable[[bytes], object]:
    """Return whether a file begins like one of our JSON objects, with one of these as its first key."""
    return re.compile(rb'\s*\{\s*"(?:' + "|".join(keys).encode() + rb')":').match


# Recognises a kind of file by its beginning: an output replaces only an older file of its kind.
# Any text file counts as a text: summaries look like notes.
_KINDS: dict[str, Callable[[bytes], object]] = {
    "a text": _is_text,
    "an older page": lambda begin: b"default-src 'none'" in begin,
    "an older file of scores": _json_from("signature"),
    "an older file of losses": _json_from("losses"),
    "an older file of checks": _json_from("checked"),
    "an older file of costs": _json_from("configs"),
    "an older file of times": _json_from("overrides"),
    "an older file of summaries": re.compile(rb'(?:\[\n)?\{"id": "[^\n]*?", "name": ').match,
    # A .zip file whose first record is called data.pkl, as `torch.save` writes.
    "a checkpoint": re.compile(rb"PK\x03\x04.{26}(?:[^/]+/)?data\.pkl", re.DOTALL).match,
    "a report": lambda begin: begin.startswith(b"# The paper's tables and figures"),
}


def check_output(
    option: str, path: Path | None, kind: str, inputs: Iterable[Path] = (), outputs: Iterable[Path] = ()
) -> None:
    """Refuse an output that cannot be written, or that would replace another kind of file, an input or an output.

    Nothing is checked if ``path`` is None; ``kind`` is a name above.
    """
    if path is None:
        return
    if str(path) == "-":
        raise UserError(f"{option} must be the name of a file, but is -.")
    if path.is_dir():
        raise UserError(f"{option} must be a file, but {path} is a folder.")
    place = real_path(path)
    if not place.parent.is_dir():
        link = f", a link to {place}" if path.is_symlink() else ""
        raise UserError(f"{option} must be a file in a folder that exists, but is {path}{link}.")
    if place.is_symlink():
        raise UserError(f"{option} must be a file, but {path} is a link that leads back to itself.")
    if place in map(real_path, inputs):
        raise UserError(f"{option} must not replace one of the inputs, but is {path}.")
    if place in map(real_path, outputs):
        raise UserError(f"{option} must not replace another output, but is {path}.")
    # A pipe or a device is written as it is; a file appears beside the older one, and replaces it.
    needed = path if path.exists() and not path.is_file() else place.parent
    if not os.access(needed, os.W_OK):
        raise UserError(f"{option} must be a file that can be written, but {needed} is read-only.")
    if path.is_file():
        with path.open("rb") as file:
            begin = file.read(1024)
        if begin and not _KINDS[kind](begin):
            raise UserError(f"{option} must not replace a file of another kind, but {path} is not {kind}.")


def check_page(option: str, page: Path | None, inputs: Iterable[Path], outputs: Iterable[Path]) -> None:
    """Refuse a page that `check_output` refuses, or that has another ending."""
    check_output(option, page, "an older page", inputs, outputs)
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"{option} must end in .html, but is {page}.")


def write_json(path: Path | None, values: dict[str, Any]) -> None:
    """Write values to a file that appears whole or not at all; nothing is written if ``path`` is None."""
    from pyramidions.files.atomic import write_file

    if path is not None:
        write_file(path, as_json_bytes(values))
