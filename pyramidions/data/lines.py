"""Reads UTF-8 lines, and says where bytes are none."""

from pathlib import Path

from pyramidions.errors import UserError


def decode_line(line: bytes, place: str) -> str:
    """Decode one line.

    Args:
        line: the bytes.
        place: file and line, for the error.

    Raises:
        UserError: the bytes are not UTF-8.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} is 0x{line[error.start]:02x}"
        raise UserError(f"{place}: must be UTF-8, but {byte}.") from None


def read_lines(path: Path) -> list[str]:
    """The lines of a whole file; only a line feed ends one, so that any other separator stays in the text."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        raise UserError(f"The file {path} does not exist.") from None
    except IsADirectoryError:
        raise UserError(f"{path} must be a file, but is a folder.") from None
    # What follows the last line feed is a line only where there is something.
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
