"""What folders hold."""

from pathlib import Path


def contents(folder: str | Path) -> dict[str, bytes]:
    """Return the bytes of each file in a folder, by name."""
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}
