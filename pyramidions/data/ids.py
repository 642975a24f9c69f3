"""Makes the ids of documents unique, and hashes them."""

import hashlib
from itertools import count

from pyramidions.base.errors import UserError


class UniqueIds:
    """Gives each document an id that no earlier one has."""

    def __init__(self, number_repeated: bool, seen: set[str] | None = None) -> None:
        self._number_repeated = number_repeated
        self._seen = set(seen or ())
        self._last: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, name: str, place: str) -> str:
        """Return an id that was not given before."""
        given = name
        if name in self._seen:
            if not self._number_repeated:
                raise UserError(
                    f"{place}: the id {name!r} came before; ids must be unique; --number-repeated-ids numbers them."
                )
            # The numbered id may be another document's own.
            tried = (f"{name}#{number}" for number in count(self._last.get(name, 1) + 1))
            given = next(each for each in tried if each not in self._seen)
            self._last[name] = int(given.rpartition("#")[2])
        self._seen.add(given)
        return given


def id_hash(name: str) -> int:
    """Return the first 64 bits of the SHA-256 of an id, or of a text where there is no id."""
    # JSON may hold lone surrogates, which plain UTF-8 refuses.
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8])
