"""Scores on a model card."""

from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.markdown import plain
from pyramidions.base.strict_json import parse_json
from pyramidions.files.bounded import read_regular
from pyramidions.files.parallel import chunks
from pyramidions.scoring import FIGURES

_COLUMNS = 5  # figures in a table


class Scores(NamedTuple):
    """A file of scores.

    Attributes:
        signature: says how they were computed.
        systems: the figures of each by their names.
        remarks: what a reader of the first system's must know.
    """

    signature: str
    systems: dict[str, dict[str, Any]]
    remarks: list[str]


def read_scores(path: Path) -> Scores:
    """Read a file of scores.

    Raises:
        UserError: there is no such file, or it is damaged.
    """
    try:
        found = parse_json(read_regular(path))
        # A file of scores has the figures of the metrics that were known when it was written.
        first: dict[str, Any] = next(iter(found["systems"].values()), {})
        names = [name for name in first if name in FIGURES]
        figures = {
            system: {name: {key: float(means[name][key]) for key in ("mean", "low", "high")} for name in names}
            for system, means in found["systems"].items()
        }
        if not figures:
            raise ValueError
        # 0.1.0 wrote no remarks.
        remarks = found.get("remarks", {}).get(next(iter(figures)), [])
        return Scores(str(found["signature"]), figures, list(map(str, remarks)))
    except FileNotFoundError:
        raise UserError(f"The scores {path} do not exist.") from None
    except IsADirectoryError:
        raise UserError(f"The scores {path} must be a file, but are a folder.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} must be as written by `pyramidions score --json`.") from None


def scores_table(path: Path) -> str:
    """Return the means of a file of scores as tables in Markdown, with their intervals; errors as in `read_scores`."""
    signature, systems, remarks = read_scores(path)
    tables = []
    for names in chunks(next(iter(systems.values())), _COLUMNS):
        rows = [
            (plain(system), *("{mean:.2f} [{low:.2f}, {high:.2f}]".format(**figures[name]) for name in names))
            for system, figures in systems.items()
        ]
        tables.append(table(("", *(FIGURES[name].label for name in names)), rows))
    return "\n\n".join([*tables, " ".join(["Means with 95% intervals.", *map(plain, [*remarks, signature])])])


def table(head: tuple[str, ...], rows: Any) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)
