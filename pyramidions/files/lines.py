"""Reads lines of UTF-8, and reports where bytes are not UTF-8."""

from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.files.bounded import at_most

#: The most that is read of a pipe or a device, in MiB.
STREAM_LIMIT = 1024


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
        raise UserError(f"{place}: must be UTF-8, but {byte}{encoding_hint(line)}.") from None


def encoding_hint(content: bytes) -> str:
    """Say what converts bytes that are no UTF-8, if they seem to be text."""
    name = "UTF-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "WINDOWS-1252"
    known = name == "UTF-16" or b"\0" not in content
    return f" (if it is {name}, `iconv -f {name} -t UTF-8` converts it)" * known


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file; only a line feed ends a line, so other separators stay in the text.

    Raises:
        UserError: there is no such file, or it is not UTF-8; or a pipe or device gives more than `STREAM_LIMIT`.
    """
    try:
        with path.open("rb") as file:
            # A file is as large as its disk allows; a device may have no end.
            content = file.read() if path.is_file() else at_most(file.read, STREAM_LIMIT, str(path))
        lines = content.split(b"\n")
    except FileNotFoundError:
        raise UserError(f"The file {path} does not exist.") from None
    except IsADirectoryError:
        raise UserError(f"{path} must be a file, but is a folder.") from None
    # A final line feed begins no further line.
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
