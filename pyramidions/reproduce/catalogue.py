"""The rows of the paper's tables and figures, what the paper reports of them, and the jobs that they need."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator

from pyramidions.errors import UserError

#: Tables and figures made of rows that are trained and scored.
QUALITY_TABLES = ("table2", "table3", "table4", "table7", "table8")
#: Table 10 times the rows of these.
TIMED_TABLES = ("table2", "table7", "table8")
#: The paper's figures of a row.
FIGURES = ("train_s", "infer256_s", "infer512_s", "r1", "r1_low", "r1_high", "r2", "r2_low", "r2_high")

#: The steps of a row, by table.
_STEPS = {
    **dict.fromkeys(QUALITY_TABLES, ("train", "generate", "score", "time")),
    "table10": ("time",),
    "figure4": ("time-training",),
}
#: The order of steps.
ORDER = ("train", "generate", "score", "time", "time-training")


class PaperRow(BaseModel, frozen=True):
    """One row of configs/paper.csv.

    Attributes:
        table: "table2", "table3", "table4", "table7", "table8" or "figure4".
        row: its number in the paper or, where it has none, a name.
        config: its file in the folder of configs, without ".yaml"; rows that the paper lists twice share one.
        data: the corpus, "arxiv" or "pubmed".
        starts_from: the config whose trained model it is fine-tuned from, or "".
        reference: the config that its times are compared with.
        architecture: as the paper calls it, in lower case.
        encoder_lengths: what each encoder layer consumes; a comma repeats a length, ">" marks a pooling in between.
        decoder_length: how many representations the decoder reads.
        block_size: of the attention; None without blocks.
        encoder_layers: how many.
        decoder_layers: how many.
        paper: what the paper reports, by the names in `FIGURES`: seconds a batch, and ROUGE-1 and -2 in percent with
            95% intervals; without what it does not report.
    """

    table: str
    row: str
    config: str
    data: str
    starts_from: str
    reference: str
    architecture: str
    encoder_lengths: str
    decoder_length: int
    block_size: Annotated[int | None, BeforeValidator(lambda cell: cell or None)]
    encoder_layers: int
    decoder_layers: int
    paper: dict[str, float]


def read_catalogue(configs: Path) -> list[PaperRow]:
    """Read paper.csv in the folder of configs.

    Raises:
        UserError: there is no such file.
    """
    path = configs / "paper.csv"
    if not path.is_file():
        raise UserError(f"--configs must be the folder that holds paper.csv, but is {configs}.")
    with path.open(newline="", encoding="utf-8") as file:
        return [
            PaperRow.model_validate({**line, "paper": {key: line[key] for key in FIGURES if line[key]}})
            for line in csv.DictReader(file)
        ]


def rows_of(catalogue: list[PaperRow], table: str) -> list[PaperRow]:
    """Return the rows of a table or figure, in the paper's order; table 10 is made of rows of other tables."""
    tables = TIMED_TABLES if table == "table10" else (table,)
    return [row for row in catalogue if row.table in tables]


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
        tables: their names, and those of figures.
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
