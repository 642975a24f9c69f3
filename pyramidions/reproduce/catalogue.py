"""The rows of the paper's tables and figures: which config each has, and what the paper reports."""

import csv
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from pyramidions.errors import UserError

#: Tables and figures made of rows that are trained and scored.
QUALITY_TABLES = ("table2", "table3", "table4", "table7", "table8")
#: Table 10 times the rows of these.
TIMED_TABLES = ("table2", "table7", "table8")
#: The paper's figures of a row.
FIGURES = ("train_s", "infer256_s", "infer512_s", "r1", "r1_low", "r1_high", "r2", "r2_low", "r2_high")


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
