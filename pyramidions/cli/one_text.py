"""Reads the one text of a file, or of standard input."""

from pathlib import Path
from typing import TYPE_CHECKING

from pyramidions.base.errors import UserError

if TYPE_CHECKING:
    from pyramidions.documents.source import InputText


def read_text(path: Path) -> "InputText":
    """Return the text of a file of any format except records; - is standard input.

    Raises:
        UserError: it is a folder, holds records, or cannot be read.
    """
    from pyramidions.documents.file_formats import holds_records
    from pyramidions.documents.source import read_file

    if path.is_dir():
        raise UserError(f"{path} must be a file, but is a folder.")
    if holds_records(path):
        raise UserError(f"{path} must hold one text, but its name is that of records.")
    return read_file(path)
