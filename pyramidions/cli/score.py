"""`pyramidions score`."""

import re
from collections.abc import Mapping
from dataclasses import Field, asdict, fields
from pathlib import Path
from typing import Any, get_args

import click

from pyramidions.base.arguments import flag_of
from pyramidions.base.errors import UserError
from pyramidions.cli.options import PATH, naming_options, option_group, require
from pyramidions.cli.outputs import check_output
from pyramidions.cli.score_report import side_by_side, table, write_json
from pyramidions.data.folder import DataFolder
from pyramidions.files.atomic import atomic_file
from pyramidions.files.bounded import file_hash, real_path
from pyramidions.files.parallel import available_cores
from pyramidions.scoring.examples import Examples, FolderDocuments, Read, Texts
from pyramidions.scoring.examples import lead as first_sentences
from pyramidions.scoring.metric import METRICS, Metric, MetricOptions
from pyramidions.scoring.scores import metrics_of, score_documents
from pyramidions.scoring.summaries import References, read_documents, read_summaries
from pyramidions.text.language import Language

LEAD = "lead"


def _option(field: "Field[Any]") -> Any:
    # `str | None` is a str that may be absent.
    kind = next(kind for kind in (*get_args(field.type), field.type) if kind is not type(None))
    return click.option(
        flag_of(field.name),
        type=kind,
        is_flag=kind is bool,
        default=field.default,
        show_default=field.default not in (None, False),
        help=field.metadata["help"],
    )


#: Gives a command `--metrics`, as ``metrics``, and the fields of `MetricOptions`, as ``metric_options``.
metric_options = option_group(
    click.option(
        "--metrics",
        default="rouge",
        show_default=True,
        callback=lambda _context, _option, names: names.split(","),
        help=f"Metrics, with commas in between, of {', '.join(METRICS.names)}.",
    ),
    *map(_option, fields(MetricOptions)),
    name="metric_options",
    kind=MetricOptions,
)


@click.command(short_help="Score summaries against the raw references.")
@click.argument("summaries", type=PATH)
@click.option("--data", type=PATH, help="Data folder with the raw references.")
@click.option(
    "--split",
    type=click.Choice(["train", "valid", "test"]),
    help="Split of --data.  [default: that of generate-SPLIT.txt, else test]",
)
@click.option(
    "--references",
    type=PATH,
    help="References instead of --data: .jsonl of {id, summary} or {id, abstract}, or text with one summary per line.",
)
@click.option(
    "--documents",
    type=PATH,
    help="Documents for metrics that read them: .jsonl of {id, article}, or text with one document per line.  "
    "[default: those of --data]",
)
@metric_options
@click.option("--baseline", multiple=True, type=PATH, help="Summaries to compare with.")
@click.option("--lead", is_flag=True, help="Compare with the first sentences of each document; needs --data.")
@click.option("--lead-words", type=click.IntRange(1), help="Their length.  [default: mean of train's summaries]")
@click.option("--json", "out", type=PATH, help="Write all numbers to this file.")
@click.option("--show", type=click.IntRange(0), metavar="N", help="Show summary and reference of document N.")
@click.option("--workers", type=click.IntRange(1, 1024), help="Processes that score.  [default: all cores]")
def score(
    summaries: Path,
    data: Path | None,
    split: str | None,
    references: Path | None,
    documents: Path | None,
    metrics: list[str],
    metric_options: MetricOptions,
    baseline: tuple[Path, ...],
    lead: bool,
    lead_words: int | None,
    out: Path | None,
    show: int | None,
    workers: int | None,
) -> None:
    """Score summaries against the raw references, by ROUGE-1, -2, -L and -Lsum unless --metrics names others.

    SUMMARIES is the output of fairseq-generate, a .jsonl file of {id, summary}, or text with one summary per line.
    A .json file holds a list of what .jsonl holds. In .jsonl, a reference may be a list of several texts. Every
    document must have a summary; an empty one gets the worst of each figure that has a worst.

    Summaries and references are normalised and split into sentences in the same way. Every figure comes with a 95%
    interval; a paired bootstrap gives the difference to each baseline, its interval and its p-value.

    \b
    Examples:
      pyramidions score generate-test.txt --data prepared --lead --json scores.json
      pyramidions score summaries.jsonl --references references.jsonl --documents papers.jsonl \\
          --metrics rouge,meteor,coverage,novelty
    """
    if data and references:
        raise UserError("Exactly one of --data and --references must be given.")
    require("--data", references is None, {"--split": split})
    read = [summaries, *baseline, *(path for path in (references, documents) if path)]
    _check_output(out, data, read)
    inputs = ScoreInputs(data, _split(summaries, split), references, documents)
    expected = inputs.references
    if show is not None and show >= len(expected.ids):
        raise UserError(f"--show must be below {len(expected.ids)}, the number of documents, but is {show}.")
    systems = _systems((summaries, *baseline), expected)
    require("--lead", lead, {"--lead-words": lead_words})
    if lead and LEAD in systems:
        raise UserError(f"No file of summaries may be named {LEAD} beside --lead: rename it.")
    if lead:
        systems[LEAD] = inputs.leads(lead_words, metric_options.language)
    with naming_options(*asdict(metric_options)):
        chosen = metrics_of(metrics, metric_options)
    sources = inputs.sources(chosen)
    examples = {name: Examples(texts, expected.texts, sources) for name, texts in systems.items()}
    workers = workers or available_cores()
    scores = {name: score_documents(of_system, chosen, workers=workers) for name, of_system in examples.items()}
    click.echo(table(scores))
    if out is not None:
        with atomic_file(out) as file:
            write_json(file, scores, expected.ids)
    if show is not None:
        click.echo(f"\n{side_by_side(examples[str(summaries)], show, expected.ids[show])}")


def _systems(paths: tuple[Path, ...], references: References) -> dict[str, Texts]:
    if repeated := [path for i, path in enumerate(paths) if path in paths[:i]]:
        raise UserError(f"--baseline must name other summaries each time, but {repeated[0]} comes twice.")
    return {str(path): read_summaries(path, references) for path in paths}


def _check_output(out: Path | None, data: Path | None, inputs: list[Path]) -> None:
    if out is not None and data is not None and real_path(data) in real_path(out).parents:
        raise UserError(f"--json must not lie in the data folder {data}, but is {out}.")
    check_output("--json", out, "an older file of scores", inputs)


def _split(summaries: Path, asked: str | None) -> str:
    """Return the split that was asked for, or else that in the name of fairseq's output, or else test."""
    named = re.fullmatch(r"generate-(train|valid|test)\.txt", summaries.name)
    if named and asked not in (None, named[1]):
        raise UserError(f"--split must be {named[1]}, as the name of {summaries} says, but is {asked}.")
    return asked or (named[1] if named else "test")


class ScoreInputs:
    """References and documents, from files or else from a split of a data folder."""

    def __init__(self, data: Path | None, split: str, references: Path | None, documents: Path | None) -> None:
        self._folder = None if data is None else DataFolder(data)
        self._split = split
        self._documents = documents
        if self._folder is not None:
            references = self._folder.existing_references(split)
            if self._folder.manifest_path.exists():
                _refuse_damaged(self._folder, references)
        if references is None:
            raise UserError("Exactly one of --data and --references must be given.")
        self.references = References.read(references)

    def sources(self, metrics: Mapping[str, Metric]) -> Texts | None:
        """Return the documents, or None if no metric reads them."""
        reading = [name for name, metric in metrics.items() if metric.reads_source]
        if self._documents is not None:
            if not reading:
                raise UserError(
                    f"--documents has no effect: none of the metrics ({', '.join(metrics)}) reads documents."
                )
            return read_documents(self._documents, self.references)
        if reading and self._folder is None:
            raise UserError(f"The metric {reading[0]} reads the documents: give --documents or --data.")
        return self._whole(self._folder) if reading and self._folder else None

    def leads(self, words: int | None, language: str) -> Texts:
        """Return the first sentences of each document, of ``words`` words, or of the mean of training summaries."""
        if self._folder is None:
            raise UserError("--lead needs --data, which has the documents.")
        if self._split in self._folder.manifest["settings"].get("pairs", {}):
            raise UserError(
                f"--lead needs whole documents, and {self._folder.path} holds parts of them: write the lead by "
                "`pyramidions extract --method lead`, and give it as --baseline."
            )
        if words is None:
            train = self._folder.manifest["splits"].get("train")
            if train is None:
                raise UserError(f"--lead needs --lead-words, since {self._folder.path} has no train split.")
            words = round(train["target_words"]["mean"])
        documents, cut = self._whole(self._folder), Language(language)
        return Read(len(documents), lambda at: first_sentences(documents[at], words, cut))

    def _whole(self, folder: DataFolder) -> FolderDocuments:
        _refuse_damaged(folder, folder.tokens_path(self._split, "source"), folder.tokenizer_path)
        return FolderDocuments(folder, self._split)


def _refuse_damaged(folder: DataFolder, *paths: Path) -> None:
    """Refuse files whose hash is not the manifest's: one flipped bit would give another score."""
    hashes = folder.manifest["files"]
    for path in paths:
        if path.is_file() and path.name in hashes and file_hash(path) != hashes[path.name]:
            raise UserError(f"{path} is damaged: its SHA-256 is not the one in {folder.manifest_path.name}.")
