"""The jobs that tables need: each config once per corpus, after the model that it starts from."""

from collections.abc import Iterable
from typing import NamedTuple

from pyramidions.errors import UserError
from pyramidions.reproduce.catalogue import QUALITY_TABLES, PaperRow, rows_of

#: The steps of a row, by table.
_STEPS = {
    **dict.fromkeys(QUALITY_TABLES, ("train", "generate", "score", "time")),
    "table10": ("time",),
    "figure4": ("time-training",),
}
TABLES = tuple(_STEPS)
#: The order of steps.
ORDER = ("train", "generate", "score", "time", "time-training")


class Job(NamedTuple):
    """A config on a corpus, which rows of several tables may share.

    Attributes:
        row: one of those rows.
        wanted: names of the steps to run.
    """

    row: PaperRow
    wanted: frozenset[str]

    @property
    def name(self) -> str:
        """Corpus and config."""
        return f"{self.row.data}/{self.row.config}"

    @property
    def reads_corpus(self) -> bool:
        """Whether a step reads documents; timing makes up its own."""
        return bool(self.wanted & {"train", "generate", "score"})


def jobs_for(catalogue: list[PaperRow], tables: Iterable[str], only: Iterable[str] = ()) -> list[Job]:
    """Return the jobs that tables need, each config once and after the one that it is fine-tuned from.

    Args:
        catalogue: all rows.
        tables: names from `TABLES`.
        only: rows of those tables, by the paper's number or name; none for all.

    Raises:
        UserError: none of the tables has such a row.
    """
    only = list(only)
    wanted: dict[tuple[str, str], Job] = {}

    def want(row: PaperRow, steps: Iterable[str]) -> None:
        job = wanted.setdefault((row.config, row.data), Job(row, frozenset()))
        wanted[row.config, row.data] = job._replace(wanted=job.wanted | set(steps))

    found = [(table, row) for table in tables for row in rows_of(catalogue, table)]
    known = [row.row for _, row in found]
    if unknown := [name for name in only if name not in known]:
        raise UserError(f"--rows must be of {', '.join(known)}, but one is {unknown[0]!r}.")
    for table, row in found:
        if only and row.row not in only:
            continue
        if row.starts_from and "train" in _STEPS[table]:
            want(next(r for r in catalogue if (r.config, r.data) == (row.starts_from, row.data)), ("train",))
        want(row, _STEPS[table])
    return list(wanted.values())
