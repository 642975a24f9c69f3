"""A set of texts on the disk."""

import sqlite3
from typing import Any

from pyramidions.errors import UserError

_CACHE = 64 * 1024  # KiB of memory


class DiskSet:
    """A set of texts in a temporary file, which is gone with the process; memory does not grow with it.

    Its methods raise a `UserError` where the file cannot be written.
    """

    def __init__(self) -> None:
        self._size = 0
        # The empty name stands for a temporary file.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(f"PRAGMA cache_size = -{_CACHE}")
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE texts (text BLOB PRIMARY KEY) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def __len__(self) -> int:
        return self._size

    def __contains__(self, text: str) -> bool:
        found = self._execute("SELECT 1 FROM texts WHERE text = ?", _key(text))
        return found.fetchone() is not None

    def add(self, text: str) -> None:
        """Add a text."""
        done = self._execute("INSERT OR IGNORE INTO texts VALUES (?)", _key(text))
        self._size += done.rowcount

    def _execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.OperationalError as error:
            raise UserError(
                f"Ids are kept in a temporary file, which cannot be written ({error}): set SQLITE_TMPDIR to a folder "
                "with more room."
            ) from None


def _key(text: str) -> bytes:
    # JSON may hold lone surrogates, which plain UTF-8 refuses.
    return text.encode("utf-8", "surrogatepass")
