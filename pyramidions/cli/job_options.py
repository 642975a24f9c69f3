"""The options that `extract`, `summarize` and `segments` share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from pyramidions.base.errors import UserError
from pyramidions.base.reading import BY_HEADINGS, SELECTING, WRITER_KEY, WRITER_READS, WRITER_WORDS
from pyramidions.cli.options import PATH, exclude, option, option_group, require
from pyramidions.files.bounded import real_path
from pyramidions.files.lines import read_lines


class Asked(NamedTuple):
    """What a user asks of documents and results, by any command."""

    files: tuple[Path, ...]
    field: str | None
    id_field: str | None
    as_one: bool
    layout: str | None
    as_json: bool
    out: Path | None
    engine: str | None
    resume: bool
    page: Path | None = None
    queries: tuple[str, ...] = ()
    query_file: Path | None = None
    query_field: str | None = None

    def for_all(self) -> list[str]:
        """Return the queries for all documents; none if each has its own, or there are none."""
        exclude({"--query": self.queries, "--query-file": self.query_file, "--query-field": self.query_field})
        if self.query_file is None:
            return list(self.queries)
        if queries := [line.strip() for line in read_lines(self.query_file) if line.strip()]:
            return queries
        raise UserError(f"{self.query_file} must hold a query a line, but holds none.")


#: Gives a command what its user asks of documents and results, as `asked`.
job_command = option_group(name="asked", kind=Asked)

#: What is read.
reading_options = option_group(
    click.option("--field", help="Field with the text, in .jsonl files.  [default: text, article or article_text]"),
    click.option("--id-field", help="Field with the id, in .jsonl files.  [default: as in prepare, else the position]"),
    click.option("--as-one", is_flag=True, help="Read all FILES as one document, with a section for each file."),
)

#: What a summary answers.
query_options = option_group(
    click.option(
        "--query",
        "queries",
        multiple=True,
        help="What the summary answers, for models that take queries. Given several times, each document is summarized "
        "once per query.",
    ),
    click.option("--query-file", type=PATH, help="File with one query per line."),
    click.option("--query-field", help="Field with the query of a document, in .jsonl files."),
)


def writing_options(page: str | None = None) -> Callable[[Any], Any]:
    """Add the options about what is written, and what computes it; ``page`` says what that of --explain shows."""
    explain = click.option("--explain", "page", metavar="PAGE.html", type=PATH, help=f"Write a page {page}.")
    return option_group(
        click.option(
            "--format",
            "layout",
            type=click.Choice(["list", "text", "json"]),
            help="list: by section, in lines as wide as the terminal; text: plain text; json: one object per document. "
            " [default: list on a terminal, else text]",
        ),
        click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
        click.option(
            *("-o", "--out"),
            type=PATH,
            help="Write to this file: .txt or .md for text, .jsonl for one object per line, .json for a list.",
        ),
        click.option(
            "--resume",
            is_flag=True,
            help="Continue an interrupted run with the same settings; --out must end in .jsonl.",
        ),
        *([] if page is None else [explain]),
        click.option(
            "--engine",
            type=click.Choice(["ray"]),
            help="Compute on all machines of a Ray cluster, or on all cores of this one.  [default: in this process]",
        ),
    )


def check_long(
    long: str, section_types: Path | None, select: str | None, language: str | None, checks: bool, as_one: bool
) -> None:
    """Refuse options that this way to read long documents does not use."""
    require("--long sections", long == "sections", {"--section-types": section_types})
    if select is not None and long not in SELECTING:
        raise UserError(f"--select needs {' or '.join(f'--long {way}' for way in SELECTING)}.")
    if as_one and long == "sections":
        raise UserError("--as-one makes sections of files: --long sections, which looks for usual titles, excludes it.")
    if language is not None and long not in BY_HEADINGS and not checks:
        raise UserError(f"--language needs --check, or --long {', '.join(BY_HEADINGS)}, but --long is {long}.")


def check_model(model: Path, command: str) -> None:
    """Refuse what stands where the model belongs: a document, the work folder of a training, what is no network."""
    from pyramidions.documents.file_formats import LIMITS
    from pyramidions.pretrained.places import place_of_network

    if (saved := model / "checkpoints").is_dir() and (model / "run.json").is_file():
        raise UserError(
            f"MODEL must be a model, but {model} is the work folder of a training: {saved} holds its models."
        )
    if model.suffix.lower() in LIMITS:
        writes = command == "summarize"
        example = "facebook/bart-large-cnn" if writes else "MODEL"
        others = " `pyramidions models` lists other models." if writes else ""
        raise UserError(
            f"MODEL comes before the documents, but {model} is a document: type `pyramidions {command} {example} "
            f"{model}`, or `pyramidions extract {model}`, which needs no model.{others}"
        )
    if model.exists():
        place_of_network(model)


def model_name(model: Path) -> str:
    """Return what a page calls a model: that of a checkpoint needs its folder's name."""
    place = real_path(model)
    return "/".join(place.parts[-2:]) if place.is_file() else place.name


#: Options of `summarize` that a served model takes, too; those of --writer have its name.
_SHARED = (
    "as_one",
    *("model", "files", "field", "id_field", "queries", "query_file", "query_field", "long", "section_types", "select"),
    *("language", "checks", "layout", "as_json", "out", "resume", "engine"),
)

# Options whose parameters have other names.
_FLAGS = {"page": "explain"}


class Served(NamedTuple):
    """What a user asks of a model on a server."""

    writer: str | None
    writer_model: str | None
    writer_words: int | None
    writer_reads: int | None

    def asked(self) -> bool:
        """Return whether such a model is asked for; refuse options that do not fit together."""
        require("--writer", self.writer, {option(name): value for name, value in self._asdict().items()})
        if self.writer is None:
            return False
        context = click.get_current_context()
        for name in context.params:
            # Of grouped options, the context knows each by its own name.
            given_by = context.get_parameter_source(name)
            if given_by is click.core.ParameterSource.COMMANDLINE and name not in _SHARED + Served._fields:
                raise UserError(f"{option(_FLAGS.get(name, name))} is for a MODEL, in whose place --writer is given.")
        if self.writer_model is None:
            raise UserError("--writer-model must name the model on the server, but is not given.")
        return True


#: The options of a model on a server, as `served`.
served_options = option_group(
    click.option(
        "--writer",
        metavar="URL",
        help="Write with a language model on a server with an OpenAI-compatible API, such as vLLM or Ollama: "
        f"http://localhost:8000/v1. There is no MODEL then. A key, if the server wants one, is read from {WRITER_KEY}.",
    ),
    click.option("--writer-model", metavar="NAME", help="Name of the model on that server."),
    click.option(
        "--writer-words",
        type=click.IntRange(1),
        help=f"Words that --writer asks for, at most, of each part.  [default: {WRITER_WORDS}]",
    ),
    click.option(
        "--writer-reads",
        type=click.IntRange(1),
        help="Most tokens that --writer reads at once, estimated at four characters each. --long says how it reads "
        f"longer documents.  [default: {WRITER_READS:,}]",
    ),
    name="served",
    kind=Served,
)
