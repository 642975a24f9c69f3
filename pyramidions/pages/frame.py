"""The frame of a page: one HTML file that needs no network."""

import json
import re
from importlib.resources import files
from typing import Any

#: most bytes of all texts on a page: browsers open it in a few seconds, and it fits in an e-mail
MOST = 24 * 2**20

_SURROGATE = re.compile("[\ud800-\udfff]")


def framed(title: str, body: str, style: str, script: str, data: str) -> str:
    """Return a page.

    Args:
        title: of the page, plain text without markup.
        body: HTML; it contains an svg element.
        style: CSS, which follows that of all pages.
        script: JavaScript, likewise; it finds the data in `all`.
        data: as `as_json` writes it.
    """
    page = resource(__package__, "frame.html").replace("@TITLE@", title, 1).replace("@BODY@", body, 1)
    page = page.replace("@STYLE@", resource(__package__, "frame.css") + style, 1)
    page = page.replace("@SCRIPT@", resource(__package__, "frame.js") + script, 1)
    # The data comes last: a text may contain the name of a place.
    return page.replace("@DATA@", data, 1)


def as_json(data: Any) -> str:
    """Write data so that a script element can contain it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Names of files and ids may hold lone surrogates, which UTF-8 does not.
    text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    # No text may close the script element that contains it.
    return text.replace("<", "\\u003c")


def resource(package: str, name: str) -> str:
    """Return the text of a file that lies in a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")
