"""Names of models on the hub."""

import re
from pathlib import Path
from typing import NamedTuple

_PART = r"[A-Za-z0-9_][\w.-]*"
_NAME = re.compile(rf"(?P<name>{_PART}/{_PART})(?:@(?P<revision>[\w][\w./-]*))?", re.ASCII)
# What ends in one of these is a file.
_FILES = (
    *(".pt", ".model", ".git", ".jsonl", ".json", ".txt", ".bin", ".safetensors"),
    *(".tar.gz", ".tgz", ".tar"),
)


class HubName(NamedTuple):
    """A model on the hub.

    Attributes:
        name: OWNER/NAME.
        revision: a branch, a tag or a commit; None for the main branch.
    """

    name: str
    revision: str | None = None

    def __str__(self) -> str:
        """OWNER/NAME, or OWNER/NAME@REVISION."""
        return self.name if self.revision is None else f"{self.name}@{self.revision}"


def hub_name(place: str | Path) -> HubName | None:
    """Return what a place names on the hub, unless it is a path that exists, or one in a folder that does."""
    found = parsed(str(place))
    # A mistyped path is no reason to ask the hub.
    return None if found is None or Path(found.name).parent.exists() or Path(place).exists() else found


def parsed(text: str) -> HubName | None:
    """Return what OWNER/NAME or OWNER/NAME@REVISION names; None for any other text."""
    found = _NAME.fullmatch(text)
    if found is None:
        return None
    name = found["name"]
    if len(name) > 96 or "--" in name or ".." in name or name.endswith((".", "-", *_FILES)):
        return None
    return HubName(name, found["revision"])
