"""What a run has done so far, in one file of its work folder."""

import json
from pathlib import Path
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.files.atomic import write_file

FORMAT = 1


class State:
    """Facts of a run, written at once when they change.

    Args:
        path: the file.
        facts: what it holds.
    """

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self.path = path
        self.facts = facts

    @classmethod
    def read(cls, path: Path) -> "State | None":
        """Read a file; None if there is none.

        Raises:
            UserError: it is damaged, or of another version.
        """
        if not path.exists():
            return None
        try:
            facts = parse_json(path.read_bytes())
        except ValueError:
            facts = None
        kinds = {"arguments": dict, "inputs": dict, "done": dict}
        if not isinstance(facts, dict) or any(not isinstance(facts.get(name), kind) for name, kind in kinds.items()):
            raise UserError(f"{path} must be as written by `pyramidions train`; --overwrite begins anew.")
        if facts.get("format") != FORMAT:
            raise UserError(f"{path} is of another version of pyramidions; --overwrite begins anew.")
        return cls(path, facts)

    @classmethod
    def new(cls, path: Path, **facts: Any) -> "State":
        """Begin a run."""
        state = cls(path, {"format": FORMAT, **facts, "done": {}})
        state._write()
        return state

    def note(self, **facts: Any) -> None:
        """Add facts."""
        self.facts |= facts
        self._write()

    def is_done(self, step: str) -> bool:
        """Return whether a step is done."""
        return step in self.facts["done"]

    def begin(self, step: str, later: list[str]) -> None:
        """Take back a step and those after it, whose results come from it."""
        done = {name: seconds for name, seconds in self.facts["done"].items() if name not in (step, *later)}
        if done != self.facts["done"]:
            self.note(done=done)

    def finish(self, step: str, seconds: float) -> None:
        """Mark a step as done."""
        self.note(done={**self.facts["done"], step: round(seconds, 1)})

    def _write(self) -> None:
        write_file(self.path, (json.dumps(self.facts, indent=1) + "\n").encode())
