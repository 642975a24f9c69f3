"""A page that shows documents: one HTML file that needs no network."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from pyramidions.errors import UserError

#: most bytes of all documents on a page: browsers open it in a few seconds, and it fits in an e-mail
MOST = 24 * 2**20


class DocumentPage:
    """The documents of a page, gathered one by one as JSON.

    Args:
        name: of the page's own .html, .css and .js file, which follow what all pages share.
        most: bytes of all documents.
    """

    def __init__(self, name: str, most: int = MOST) -> None:
        self._name = name
        self._most = most
        self._size = 0
        self._documents: list[str] = []
        self.left_out = 0  #: documents that are not on the page, or not to their end

    def reserve(self, data: str) -> bool:
        """Reserve room for a document or a part of one; return whether there was any."""
        size = self._size + len(data.encode())
        if size > self._most:
            return False
        self._size = size
        return True

    def add(self, document: str) -> None:
        """Add a document, for which room was reserved."""
        self._documents.append(document)

    def html(self, about: dict[str, Any]) -> str:
        """Return the page.

        Args:
            about: what the page says of all documents.
        """
        data = as_json({**about, "left_out": self.left_out})
        page = _text("document_page.html").replace("@PARTS@", _text(f"{self._name}.html"), 1)
        for place, ending in (("@STYLE@", "css"), ("@SCRIPT@", "js")):
            page = page.replace(place, _text(f"document_page.{ending}") + _text(f"{self._name}.{ending}"), 1)
        # The data comes last: a document may contain the name of a place.
        return page.replace("@DATA@", f'{data[:-1]},"documents":[{",".join(self._documents)}]}}', 1)


def as_json(data: Any) -> str:
    """Write data so that a script element can contain it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # No document may close the script element that contains it.
    return text.replace("<", "\\u003c")


def full(page: Path, left_out: int, most_of_one: str) -> UserError:
    """Return the error that tells of documents that found no room.

    Args:
        page: its file.
        left_out: the number of these documents.
        most_of_one: the most that a page shows of one document.
    """
    are = "document is" if left_out == 1 else "documents are"
    return UserError(
        f"{left_out:,} {are} missing from {page}, or incomplete there: a page holds at most {MOST // 2**20} MiB, and "
        f"{most_of_one} of one document."
    )


def _text(name: str) -> str:
    return files("pyramidions.inference").joinpath(name).read_text(encoding="utf-8")
