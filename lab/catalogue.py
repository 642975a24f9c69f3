"""The rows of the papers' tables and figures, what the papers report of them, and the jobs that they need."""

import csv
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator

from pyramidions.base.errors import UserError

CHECKOUT = Path(__file__).parents[1]
#: Systems for long documents that a lecture of 2021 compares, by corpus.
LECTURE_TABLES = ("lecture_govreport", "lecture_pubmed", "lecture_arxiv")
#: Pretraining of models with sparse parts (Jaszczur et al. 2021): all, and one part alone in several forms.
PRETRAINING_TABLES = ("sparse_table8", "sparse_figure3", "sparse_figure5", "sparse_figure7")
#: These, and their training on arXiv (table 5).
SPARSE_TABLES = ("sparse_table5", *PRETRAINING_TABLES)
#: Tables that compare whole systems by their summaries.
SYSTEM_TABLES = (*LECTURE_TABLES, "sparse_table5")
#: Parts of other systems in the shallow model of table 2. No paper has these rows.
OWN_TABLES = ("neighbours",)
#: Language models of characters (Nawrot et al. 2023).
LANGUAGE_TABLES = ("dynamic_pooling_figure3", "dynamic_pooling_figure4")
#: Tables made of rows that are trained and scored.
QUALITY_TABLES = ("table2", "table3", "table4", "table7", "table8", *OWN_TABLES, *SYSTEM_TABLES)
#: Table 10 times the rows of these.
TIMED_TABLES = ("table2", "table7", "table8")
#: A paper's figures of a row. The second and third line are those of sparse parts: seconds of decoding a token,
#: milliseconds of one block of it, ROUGE-L of sentences, percent of symbols and of sequences of toy problems, updates,
#: nats a token, and accuracy on GLUE. The last line is that of language models: bits a character, characters a segment.
FIGURES = (
    *("train_s", "infer256_s", "infer512_s", "r1", "r1_low", "r1_high", "r2", "r2_low", "r2_high", "rl"),
    *("token_s", "block_ms", "rl_sentences", "copy", "copy_sequences", "addition", "addition_sequences"),
    *("steps", "log_perplexity", "rte", "mrpc", "sst2", "qnli", "mnli", "qqp"),
    *("bpc", "shortening_factor"),
)
#: Files of the folder of configs that hold rows; the first must be there.
_FILES = ("paper.csv", "lecture.csv", "sparse.csv", "dynamic_pooling.csv", "neighbours.csv")
#: Keys of base.yaml that pretraining has not: it has no summaries.
OF_SUMMARIES = (
    *(f"~task.eval_{name}" for name in ("rouge", "rouge_args", "metrics")),
    "~task.copying_updates",
    "~task.source_prefix",
)
#: Behind the name of a corpus that is prepared with sentence markers.
MARKED = "-with-markers"

#: Documents for training and testing of the papers' corpora (Cohan et al. 2018, Huang et al. 2021).
PAPER_DOCUMENTS = {"arxiv": (203_037, 6_440), "pubmed": (119_924, 6_658), "govreport": (17_517, 973)}
_NEAR = 0.02  # how much fewer they may be; empty ones are left out

#: The steps of a row, by table.
_STEPS = {
    **dict.fromkeys(QUALITY_TABLES, ("train", "generate", "score", "time")),
    # No paper times these: lab/benchmarks/ does.
    **dict.fromkeys((*OWN_TABLES, *SYSTEM_TABLES), ("train", "generate", "score")),
    **dict.fromkeys(PRETRAINING_TABLES, ("train",)),
    **dict.fromkeys(LANGUAGE_TABLES, ("train", "test")),
    "table10": ("time",),
    "figure4": ("time-training",),
}
#: What is run of a row that is trained for several seeds: rows are compared with each other.
_COMPARED = ("train", "loss", "generate", "score")
#: The order of steps.
ORDER = ("train", "test", "loss", "generate", "score", "time", "time-training")


_OptionalInt = Annotated[int | None, BeforeValidator(lambda cell: cell or None)]
_Layers = Annotated[int, BeforeValidator(lambda cell: cell or 0)]


class PaperRow(BaseModel, frozen=True):
    """One row of paper.csv, or of a file beside it, among the configs.

    Attributes:
        table: a table or figure, such as "table2", "figure4", "lecture_pubmed" or "sparse_table1".
        row: its number in the paper or, where it has none, a name.
        config: its file in the folder of configs, without ".yaml"; rows that the paper lists twice share one. "" if we
            have no such model, or `python -m lab reproduce` does not train it, and only the published figures.
        data: the corpus, such as "arxiv"; a number behind it, as in "text8-500", is that of the pieces of a Unigram
            model whose ends are prepared, too.
        starts_from: the config whose trained model ours is fine-tuned from, or "" for nothing.
        reference: the config that its times are compared with; "" if it is not timed.
        architecture: as the paper calls it, in lower case.
        encoder_lengths: what each encoder layer consumes; a comma repeats a length, ">" marks a pooling in between; ""
            if the paper does not say.
        decoder_length: how many representations the decoder reads; None if the paper does not say.
        block_size: of the attention; None without blocks.
        encoder_layers, decoder_layers: how many ours has; 0 without a config.
        pretrained: the weights that the published system starts from; "" for none, or where that is not known.
        sentence_markers: whether it reads documents with a marker between sentences.
        note: what the paper says of the row besides, such as the significance of its figures.
        paper: what the paper reports, by the names in `FIGURES`: seconds a batch, and ROUGE in percent, with 95%
            intervals where it has them; without what it does not report. "rl" is the summary-level ROUGE-L.
    """

    table: str
    row: str
    config: str
    data: str
    starts_from: str
    reference: str
    architecture: str
    encoder_lengths: str
    decoder_length: _OptionalInt
    block_size: _OptionalInt
    encoder_layers: _Layers
    decoder_layers: _Layers
    pretrained: str = ""
    note: str = ""
    sentence_markers: Annotated[bool, BeforeValidator(lambda cell: cell or False)] = False
    paper: dict[str, float]

    @property
    def corpus(self) -> str:
        """The corpus as it is prepared for the row."""
        return f"{self.data}{MARKED}" if self.sentence_markers else self.data

    @property
    def is_of_characters(self) -> bool:
        """Whether it is a language model."""
        return self.config.startswith("dynamic_pooling/")

    @property
    def base(self) -> str:
        """The config that the row's run is composed from, without ".yaml"."""
        return "dynamic_pooling" if self.is_of_characters else "base"

    @property
    def overrides(self) -> tuple[str, ...]:
        """What composes the row's run from its base, in Hydra's syntax."""
        group, _, name = self.config.partition("/")
        # First the corpus: how long to train is said for a pretrained model there, and replaced.
        corpus = (f"+corpus={self.data}",) if self.table in LECTURE_TABLES else ()
        deleted = OF_SUMMARIES if self.table in PRETRAINING_TABLES else ()
        return (*corpus, f"+{group}={name}", *deleted)


def read_catalogue(configs: Path) -> list[PaperRow]:
    """Read paper.csv and, if they are there, the files of other papers in the folder of configs."""
    if not (configs / _FILES[0]).is_file():
        raise UserError(f"--configs must be the folder that holds {_FILES[0]}, but is {configs}.")
    rows = []
    for path in (configs / name for name in _FILES):
        if path.is_file():
            with path.open(newline="", encoding="utf-8") as file:
                for line in csv.DictReader(file):
                    paper = {key: line[key] for key in FIGURES if line.get(key)}
                    rows.append(PaperRow.model_validate({**line, "paper": paper}))
    return rows


def rows_of(catalogue: list[PaperRow], table: str) -> list[PaperRow]:
    """Return the rows of a table or figure, in its order; table 10 is made of rows of other tables."""
    tables = TIMED_TABLES if table == "table10" else (table,)
    return [row for row in catalogue if row.table in tables]


class Job(NamedTuple):
    """A config on a corpus, which rows of several tables may share, with the steps that are wanted of it."""

    row: PaperRow
    wanted: frozenset[str]
    seed: int | None = None

    @property
    def name(self) -> str:
        """Corpus, config and seed."""
        return f"{self.row.data}/{self.row.config}" + ("" if self.seed is None else f", seed {self.seed}")

    @property
    def reads_corpus(self) -> bool:
        """Whether a step reads documents; timing makes up its own."""
        return bool(self.wanted & {*_COMPARED})


def is_trained(table: str) -> bool:
    """Whether rows of a table or figure are trained, and not only timed."""
    return "train" in _STEPS[table]


def jobs_for(
    catalogue: list[PaperRow], tables: Iterable[str], only: Iterable[str] = (), seeds: Iterable[int] = ()
) -> list[Job]:
    """Return the jobs that tables need, each config once and after the one that it is fine-tuned from.

    Args:
        catalogue: all rows.
        tables: their names, and those of figures.
        only: rows of those tables, by the paper's number or name; none for all.
        seeds: each row that is trained is so for each of them, all rows for the first one first; then its loss is
            measured, and it is not timed. None for one training with the config's seed.

    Raises:
        UserError: a row that no table has.
    """
    only = list(only)
    wanted: dict[tuple[str, str], Job] = {}

    def want(row: PaperRow, steps: Iterable[str]) -> None:
        job = wanted.setdefault((row.config, row.data), Job(row, frozenset()))
        wanted[row.config, row.data] = job._replace(wanted=job.wanted | set(steps))

    found = [(table, row) for table in tables for row in rows_of(catalogue, table) if row.config]
    known = [row.row for _, row in found]
    if unknown := [name for name in only if name not in known]:
        raise UserError(f"--rows must be of {', '.join(dict.fromkeys(known))}, but one is {unknown[0]!r}.")
    seeds = list(seeds)
    for table, row in found:
        if only and row.row not in only:
            continue
        if row.starts_from and is_trained(table):
            want(next(r for r in catalogue if (r.config, r.data) == (row.starts_from, row.data)), ("train",))
        want(row, _COMPARED if seeds and "score" in _STEPS[table] else _STEPS[table])
    if not seeds:
        return list(wanted.values())
    trained = [job._replace(seed=seed) for seed in seeds for job in wanted.values() if "train" in job.wanted]
    return [*trained, *(job for job in wanted.values() if "train" not in job.wanted)]


def is_papers(data: str, documents: Mapping[str, int]) -> bool:
    """Whether a corpus has about as many documents, by split, as the paper's of that name."""
    counts = (documents.get(split, 0) for split in ("train", "test"))
    wanted = PAPER_DOCUMENTS.get(data)
    return wanted is not None and all((1 - _NEAR) * of <= n <= of for n, of in zip(counts, wanted, strict=True))


def lengths(row: PaperRow, divisor: int = 1) -> str:
    """What the encoder's layers consume and the decoder reads: "2×8192 > 2048 → 512", each over ``divisor``."""
    if row.decoder_length is None:
        return ""
    stages = []
    for stage in row.encoder_lengths.split(">"):
        same = [(int(length) // divisor, len(list(of))) for length, of in groupby(stage.split(","))]
        stages.append(", ".join(f"{count}×{length}" if count > 1 else str(length) for length, count in same))
    return f"{' > '.join(stages)} → {row.decoder_length // divisor}"
