"""A page that shows documents: one HTML file that needs no network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.pages.frame import MOST, as_json, framed, resource


class DocumentPage:
    """The documents of a page, gathered one by one as JSON.

    Args:
        name: of the page's own .html, .css and .js file, which follow what all pages share.
        most: bytes of all documents.
        parts: names of further .css and .js files, which stand before the page's own.
        title: of the page until it shows a document.
    """

    def __init__(
        self, name: str, most: int = MOST, parts: Sequence[str] = (), title: str = "Documents and their summaries"
    ) -> None:
        self._title = title
        self._name = name
        self._scripts = ("document_page", *parts, name)
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
        body = _text("document_page.html").replace("@PARTS@", _text(f"{self._name}.html"), 1)
        style, script = ("".join(_text(f"{name}.{end}") for name in self._scripts) for end in ("css", "js"))
        documents = ",".join(self._documents)
        return framed(self._title, body, style, script, f'{data[:-1]},"documents":[{documents}]}}')


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
    return resource("pyramidions.inference", name)
