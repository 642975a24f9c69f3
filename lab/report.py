"""`python -m lab report`: our results beside the papers' figures, as a page of tables and plots, and as CSV."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import click
import pandas as pd

from lab.catalogue import (
    CHECKOUT,
    LANGUAGE_TABLES,
    PRETRAINING_TABLES,
    QUALITY_TABLES,
    SYSTEM_TABLES,
    TIMED_TABLES,
    PaperRow,
    is_papers,
    lengths,
    read_catalogue,
)
from lab.pictures import draw_losses, draw_speed_ups
from lab.results import PHASES, Interval, Result, Run, TopK, read_runs, read_topk
from lab.scale import SCALES
from lab.seeds import SeededRow, bits_per_character, by_seed, compared, differences, read_seeds
from lab.tables import markdown, with_interval
from pyramidions.base.errors import UserError
from pyramidions.base.markdown import plain
from pyramidions.cli.options import PATH
from pyramidions.cli.outputs import check_output
from pyramidions.files.atomic import write_file
from pyramidions.scoring import FIGURES

#: Tables in the page's order.
TITLES = {
    "table2": "Table 2: shallow models",
    "table3": "Table 3: deep models",
    "table4": "Table 4: scorers",
    "table7": "Table 7: where to pool",
    "table8": "Table 8: sizes of blocks",
    "neighbours": "Parts of other systems in shallow models",
    "table10": "Table 10: seconds a batch",
    "figure4": "Figure 4: a training step by number of layers",
    "lecture_govreport": "GovReport: systems for long documents",
    "lecture_pubmed": "PubMed: systems for long documents",
    "lecture_arxiv": "arXiv: systems for long documents",
    "sparse_table5": "Sparse parts on arXiv: summaries (Jaszczur et al. 2021, table 5)",
    "sparse_table8": "Sparse parts in pretraining: missing spans (Jaszczur et al. 2021, table 8)",
    "sparse_figure3": "Sparse feed-forward parts in pretraining (figure 3)",
    "sparse_figure5": "Sparse projections in pretraining (figure 5)",
    "sparse_figure7": "Sparse output layers in pretraining (figure 7)",
    "dynamic_pooling_figure3": "Sizes of vocabularies and priors (Nawrot et al. 2023, figure 3)",
    "dynamic_pooling_figure4": "Numbers of layers (Nawrot et al. 2023, figure 4)",
}
TOPK = "Figures 5 and 6: seconds of top-k operators, and likeness of their result to that of hard top-k"
#: How to read the tables, whatever they hold.
LEGEND = """\
- Brackets hold 95% intervals; those of × hold the lowest and the highest ratio of two neighbouring turns.
- “×” is the speed-up over the row's reference in the same run. The paper's is the ratio of its seconds.
- “paper” is empty where the paper does not say, and where ours is no comparison: models of another size (scale), or
  trained on other data than the paper's corpus. PoWER's row 11 says 0.87 s for 256 tokens, which is left out.
- Published systems of lecture and sparse tables start from the weights that “starts from, paper” names, ours from
  “starts from, ours”: their difference is none between architectures. R-L is ROUGE-Lsum.
- Log-perplexity is in nats a token, on missing spans: the paper's of C4, ours of the documents of arXiv.
- “2×8192 > 2048 → 512”: two encoder layers read 8192 representations, one reads 2048, and the decoder reads 512."""
#: How to read the rows of several seeds.
LEGEND_OF_SEEDS = """\
- Rows are compared with each other, not with the paper. Means are over documents and seeds, with 95% bootstrap
  intervals that draw both anew; few seeds make them too narrow rather than too wide.
- “loss” is nats a token of summaries of validation documents. “another costs” is how much higher it is where the model
  reads the next document instead: around 0, the model does not read, and its loss says nothing about its architecture.
- “copied” is the share of these summaries that a model with a pointer probably copies from their own document.
- “loss over” is the difference to a blockwise row that reads as many tokens, paired by document, over the seeds that
  both have; below 0 is better. It is empty without such a row, a common seed, or the same documents.
- “minutes” count the training from nothing on; “GiB” is the highest peak of memory."""
#: How to read the language models of several seeds.
LEGEND_OF_CHARACTERS = """\
- Bits per character are of the whole test split, means over seeds; characters a segment are of the valid split.
- “fewer than ..., p” is the p-value of a paired t-test over seeds, where the mean is lower. A * marks models for which
  all of these are below 0.05, as in table 1 of the paper."""
#: What the paper states of figure 4, by the row's name.
CLAIMED = {"pyramidion-16": 3.8}
_NEEDED = ("scale", "training_s", "rouge1", "train_s")
_ENDS = ("", "_low", "_high", "_deviation")
_ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")


class Measure(NamedTuple):
    """Two columns of a table: the paper's and ours; ``digits`` behind the point."""

    head: str
    name: str
    paper: str
    digits: int


_SCORES = [
    *(Measure("R-1", "rouge1", "paper_r1", 2), Measure("R-2", "rouge2", "paper_r2", 2)),
    Measure("R-L", "rougeLsum", "paper_rl", 2),
]
_HEADS = dict(zip(PHASES, ("train", "decode 256", "decode 512"), strict=True))
_SECONDS = [Measure(f"{head} s", phase, f"paper_{phase}", 3) for phase, head in _HEADS.items()]
_SPEED_UPS = [
    Measure(f"{head} ×", f"{phase[:-2]}_speed_up", f"paper_{phase[:-2]}_speed_up", 2) for phase, head in _HEADS.items()
]
_PRETRAINED = [
    Measure("updates", "updates", "paper_steps", 0),
    Measure("log-perplexity", "log_perplexity", "paper_log_perplexity", 2),
]
_OF_CHARACTERS = [
    Measure("bits per character", "bpc", "paper_bpc", 3),
    Measure("characters a segment", "shortening_factor", "paper_shortening_factor", 1),
]
_MEASURES = {
    "table10": [*_SECONDS, *_SPEED_UPS],
    "figure4": [_SECONDS[0], _SPEED_UPS[0]],
    **dict.fromkeys(PRETRAINING_TABLES, _PRETRAINED),
    **dict.fromkeys(LANGUAGE_TABLES, _OF_CHARACTERS),
}


@click.command(short_help="Put our results beside the paper's, on one page.")
@click.argument("out", type=PATH)
@click.option("--configs", default=CHECKOUT / "configs", type=PATH, help="Folder with paper.csv.", show_default=False)
@click.option("--to", type=PATH, help="The page, a .md file.  [default: OUT/report.md]")
def report(out: Path, configs: Path, to: Path | None) -> None:
    """Gather what `reproduce` left in OUT: a page in Markdown, the same as CSV, and plots.

    The page has the rows that have results. The paper's ROUGE and speed-ups stand beside ours with intervals, except
    where ours come from other data or from models of another size, and the page says so. Figures 5 and 6 are
    the picture that lab/benchmarks/topk.py draws in OUT/topk. CSV and plots go beside the page.

    \b
    Example:
      python -m lab report reproduced/paper --to report.md
    """
    check_output("--to", to, "a report")
    written = write_report(out, configs, to)
    for path in written.files:
        click.echo(f"wrote {path}")
    click.echo(written.summary)


class Report(NamedTuple):
    """What was written: the page and all files, and how many rows were run, in a line."""

    page: Path
    files: list[Path]
    summary: str


def write_report(out: Path, configs: Path, to: Path | None = None) -> Report:
    """Write the report of all results in a folder; beside the page go CSV files and plots of its name.

    The page is report.md in ``out`` where ``to`` is None.

    Raises:
        UserError: a damaged result, or a page that must not be written there.
    """
    if not out.is_dir():
        raise UserError(f"OUT must be a folder of results, but is {out}.")
    asked, to = to, out / "report.md" if to is None else to
    if to.suffix != ".md" or to.is_dir() or not to.absolute().parent.is_dir():
        raise UserError(f"--to must be a .md file in a folder that exists, but is {to}.")
    catalogue = read_catalogue(configs)
    runs = read_runs(out, catalogue)
    scales = {run.result.scale for run in runs}
    if len(scales) > 1 and ("small" in scales or any(run.seed is not None for run in runs)):
        raise UserError(f"OUT must hold results of one scale, but {out} has some of {' and '.join(sorted(scales))}.")
    rows, seeded, topk = rows_and_results(catalogue, runs), read_seeds(runs), read_topk(out)
    beside = {
        "figure4.png": draw_speed_ups(_section(rows, "figure4"), CLAIMED),
        "topk.png": (out / "topk" / "topk.png").read_bytes() if topk else None,
        "losses.png": draw_losses([row for row in seeded if not row.row.is_of_characters]),
        "seeds.csv": _csv(by_seed(seeded)) if seeded else None,
    }
    files: dict[Path, bytes | None] = {to.with_suffix(".csv"): _csv(rows)}
    files |= {to.with_name(f"{to.stem}-{name}"): content for name, content in beside.items()}
    if asked is not None and not to.exists():
        _check_beside(files)
    for path, content in files.items():
        if content is None:
            # One of an earlier report would show other results than the page.
            path.unlink(missing_ok=True)
        else:
            write_file(path, content)
    pictures = {name: f"![{name}]({quote(f'{to.stem}-{name}')})" if of else "" for name, of in beside.items()}
    write_file(to, page(rows, runs, seeded, topk, pictures).encode())
    counts = rows[rows.config != ""].status.str.partition(":")[0].value_counts()
    summary = f"Rows: {', '.join(f'{count} {state}' for state, count in counts.items())}."
    return Report(to, [to, *(path for path, of in files.items() if of is not None)], summary)


def _check_beside(files: Mapping[Path, bytes | None]) -> None:
    """Refuse to write a new page beside files of another report; those of this one are of an interrupted run."""
    for path, content in files.items():
        if path.exists() and not (path.is_file() and path.read_bytes() == content):
            raise UserError(f"--to must be a page beside which no other report's files lie, but there is {path}.")


def _csv(table: pd.DataFrame) -> bytes:
    return table.convert_dtypes().to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()


def rows_and_results(catalogue: Sequence[PaperRow], runs: Sequence[Run]) -> pd.DataFrame:
    """Return one line a row of the papers: the paper's figures as "paper_...", and ours where it was run.

    Seconds end in "_s", speed-ups in "_speed_up"; "_low" and "_high" are the ends of intervals.
    """
    papers = {(row.data, row.config): row.paper for row in reversed(catalogue)}
    results = {(run.row.data, run.row.config): run.result for run in runs if run.seed is None}
    seeded = {(run.row.data, run.row.config) for run in runs if run.seed is not None}
    lines = []
    for row in catalogue:
        result, paper = results.get((row.data, row.config)), dict(row.paper)
        reference = papers.get((row.data, row.reference), {}) if row.reference else {}
        for phase in PHASES:
            if phase in paper and phase in reference:
                paper[f"{phase[:-2]}_speed_up"] = reference[phase] / paper[phase]
        if row.row in CLAIMED:
            paper["train_speed_up"] = CLAIMED[row.row]
        status = "run for seeds" if (row.data, row.config) in seeded and not result else _status(row, result)
        divisor = SCALES[result.scale].lengths if result else 1
        lines.append(
            {
                **{name: getattr(row, name) for name in ("table", "row", "config", "data", "architecture")},
                "lengths": lengths(row, divisor),
                "block_size": row.block_size and row.block_size // divisor,
                **{name: getattr(row, name) for name in ("encoder_layers", "reference", "starts_from")},
                "paper_starts_from": row.pretrained,
                "note": row.note,
                "status": status,
                "same_data": result is None or has_papers_data(result),
                **{f"paper_{name}": value for name, value in paper.items()},
                **(_numbers(row, result) if result else {}),
            }
        )
    return pd.DataFrame(lines, columns=list(dict.fromkeys([*(name for line in lines for name in line), *_NEEDED])))


def _status(row: PaperRow, result: Result | None) -> str:
    """Return "run", "not run", "published only" where we have no such model, or "partly run: " and what lacks."""
    if result is None:
        return "not run" if row.config else "published only"
    times = result.times
    timed = ["train_s"] if row.table == "figure4" else [phase for phase in PHASES if phase in row.paper]
    lacking = []
    if row.table in QUALITY_TABLES:
        parts = {"training": result.training, "generation": result.generation, "scores": result.scores}
        lacking += [name for name, part in parts.items() if part is None]
    if timed and times is None:
        lacking.append("times")
    elif times and any(phase not in times.phases for phase in timed):
        lacking.append("times of decoding")
    elif timed and times and times.reference != row.reference:
        lacking.append(f"times over {row.reference} (has: {times.reference})")
    return f"partly run: lacks {', '.join(lacking)}" if lacking else "run"


def _numbers(row: PaperRow, result: Result) -> dict[str, Any]:
    corpus, scores, times, training = result.corpus, result.scores, result.times, result.training
    found: dict[str, Any] = {"scale": result.scale, "corpus": corpus and corpus.name}
    for name, figure in (scores.figures if scores else {}).items():
        found |= _spread(name, figure)
    for phase, timing in (times.phases if times else {}).items():
        found |= {phase: timing.mean, f"{phase}_deviation": timing.standard_deviation}
        if times and times.reference == row.reference:
            found |= _spread(f"{phase[:-2]}_speed_up", timing.speed_up)
    found |= result.language.model_dump() if result.language else {}
    found["decode_tokens"] = times and " ".join(map(str, times.decode_tokens))
    if training:
        found |= {"training_s": training.seconds, "updates": training.updates, "epochs": training.epochs}
        if training.best and row.table in PRETRAINING_TABLES:
            # fairseq logs bits.
            found["log_perplexity"] = training.best.value * math.log(2)
    found["generation_s"] = result.generation and result.generation.seconds
    found |= {name: getattr(result, name) for name in ("commit", "data_hash", "seed")}
    return found | dict(result.hardware)


def _spread(name: str, interval: Interval) -> dict[str, float]:
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}


def has_papers_data(result: Result) -> bool:
    """Whether a row was trained and tested on about as many documents as the paper's corpus has."""
    return result.corpus is not None and is_papers(result.data, result.corpus.documents)


def _section(rows: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return the lines of a table that something was measured for, and published systems where ours compare.

    A row that was only timed stands in no table of scores. Figure 4, which shares rows with table 2, has lines only
    where something was timed for it alone.
    """
    of_table = rows[rows.table.isin(TIMED_TABLES if table == "table10" else [table])]
    run, trained = of_table.scale.notna(), of_table[["training_s", "rouge1"]].notna().any(axis=1)
    if table == "table10":
        return of_table[of_table.train_s.notna()]
    if table == "figure4":
        return of_table[run & (run & ~trained).any()]
    comparable = trained & (of_table.scale == "paper") & of_table.same_data
    return of_table[trained | ((of_table.config == "") & comparable.any())]


def _table(lines: pd.DataFrame, table: str) -> str:
    same_size = (lines.scale == "paper") | lines.scale.isna()
    same_data = same_size & lines.same_data
    cells = lines[["row", "scale", "architecture"]]
    if table == "table8":
        cells = cells.assign(blocks=lines.block_size)
    cells = cells.assign(**{"encoder → decoder": lines.lengths})
    if table in SYSTEM_TABLES:
        begun = lines.starts_from.replace("", "nothing").where(lines.config != "", "")
        starts = {"starts from, paper": lines.paper_starts_from.where(same_data, ""), "starts from, ours": begun}
        cells = cells.assign(**starts)
    for head, name, published, digits in _MEASURES.get(table, [*_SCORES, *_SPEED_UPS]):
        ours = shown(lines, name, digits)
        if ours.any():
            comparable = same_size if name.endswith(("_s", "_speed_up")) else same_data
            paper = shown(lines, published, digits).where(comparable, "")
            cells = cells.assign(**{f"{head} paper": paper, f"{head} ours": ours})
    return markdown(cells)


def shown(lines: pd.DataFrame, name: str, digits: int) -> pd.Series:
    """Return a column as text, with its interval or deviation; empty where there is no number."""

    def text(line: dict[Any, Any]) -> str:
        value, low, high, deviation = (line.get(f"{name}{end}", math.nan) for end in _ENDS)
        return with_interval(value, low, high, digits) + ("" if pd.isna(deviation) else f" ± {deviation:.{digits}f}")

    return pd.Series([text(line) for line in lines.to_dict("records")], lines.index, dtype=object)


def page(
    rows: pd.DataFrame, runs: Sequence[Run], seeded: Sequence[SeededRow], topk: TopK | None, pictures: Mapping[str, str]
) -> str:
    """Return the report in Markdown, with pictures by name; empty for those that are not drawn."""
    states = rows.status.str.partition(":")[0].rename("")
    parts = ["# The paper's tables and figures, and ours"]
    if any(run.seed is None for run in runs):
        parts.append(LEGEND)
    for table, title in TITLES.items():
        lines = _section(rows, table)
        if not lines.empty:
            parts += [f"## {title}", _table(lines, table), pictures["figure4.png"] if table == "figure4" else ""]
            parts.append(markdown(lines[(lines.note != "") & lines.same_data][["row", "note"]]))
    if further := {name: figure for name, figure in FIGURES.items() if name in rows and name not in _ROUGE}:
        scored = rows[rows[[*further]].notna().any(axis=1)]
        cells = {figure.label: shown(scored, name, figure.digits) for name, figure in further.items()}
        parts += ["## Other metrics", markdown(scored[["table", "row", "scale"]].assign(**cells))]
    if topk is not None:
        parts += [f"## {TOPK}", pictures["topk.png"], markdown(pd.DataFrame([topk.model_dump()]).map(plain))]
    if of_documents := [row for row in seeded if not row.row.is_of_characters]:
        parts += ["## Rows compared with each other", LEGEND_OF_SEEDS, pictures["losses.png"]]
        parts += [markdown(compared(of_documents)), "## Losses: row minus column", markdown(differences(of_documents))]
    if of_characters := [row for row in seeded if row.row.is_of_characters]:
        parts += ["## Language models", LEGEND_OF_CHARACTERS, markdown(bits_per_character(of_characters))]
    if runs:
        parts += ["## What was run on what", markdown(setups(runs))]
    ours = rows[rows.config != ""]
    counts = pd.crosstab(ours.table, states).loc[ours.table.unique()].reset_index()
    parts += ["## What was run", markdown(counts)]
    parts.append(markdown(rows[states == "partly run"][["table", "row", "status"]]))
    return "\n\n".join(part for part in parts if part) + "\n"


def setups(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the settings that runs had, with how many results had them: several lines tell that they are mixed."""
    lines = []
    for result in (run.result for run in runs):
        corpus, hardware, times = result.corpus, result.hardware, result.times
        lines.append(
            {
                "scale": result.scale,
                "data": f"{corpus.name}, {corpus.documents}" if corpus else result.data,
                "hash": result.data_hash or "",
                "hardware": f"{hardware.nodes} × {hardware.device}, {hardware.threads} threads, {hardware.gpus} GPUs",
                "commit": result.commit,
                "versions": ", ".join(f"{name} {version}" for name, version in result.versions.items()),
                "scores": result.scores.signature if result.scores else "",
                "times": ", ".join(f"{name} {value}" for name, value in times.settings.items()) if times else "",
            }
        )
    found = pd.DataFrame(lines).map(plain)
    return found.groupby(list(found), sort=False).size().reset_index(name="results")
