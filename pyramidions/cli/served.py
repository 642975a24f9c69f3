"""`pyramidions summarize --writer`: summaries by a language model on a server."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pyramidions.base.errors import UserError
from pyramidions.base.reading import BY_HEADINGS, WRITER_KEY, WRITER_READS, WRITER_WORDS
from pyramidions.cli.job import Job
from pyramidions.cli.job_options import Asked, AskedQueries, check_long
from pyramidions.cli.language_option import READ_AS
from pyramidions.cli.naming import naming_options, option
from pyramidions.cli.option_groups import option_group
from pyramidions.cli.worker import Checked, Layout, Report, Result, Worker, as_text

if TYPE_CHECKING:
    from pyramidions.documents.source import InputText
    from pyramidions.inference.served_model import WrittenSummary

#: Options of `summarize` that a served model takes, too; those of --writer have its name.
_SHARED = (
    "as_one",
    *("model", "files", "field", "id_field", "queries", "query_file", "query_field", "long", "section_types", "select"),
    *("language", "checks", "layout", "as_json", "out", "resume", "engine"),
)


class Served(NamedTuple):
    """What a user asks of a model on a server."""

    writer: str | None
    writer_model: str | None
    writer_words: int | None
    writer_reads: int | None

    def asked(self) -> bool:
        """Return whether such a model is asked for.

        Raises:
            UserError: options do not fit together.
        """
        if self.writer is None:
            given = next((name for name, value in self._asdict().items() if value is not None), None)
            if given is not None:
                raise UserError(f"{option(given)} is an option of --writer, which is not given.")
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


# Options whose parameters have other names.
_FLAGS = {"page": "explain"}

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


def summarize_served(
    asked: Asked,
    about: AskedQueries,
    served: Served,
    long: str | None,
    section_types: Path | None,
    select: str | None,
    language: str | None,
    checks: bool,
) -> int:
    """Summarize documents by a model on a server; return the exit status.

    Args:
        asked, about, long, section_types, select, language, checks: as in `summarize`.
        served: the model.
    """
    from pyramidions.documents.source import Fields

    long = long or "extract"
    if long == "rewrite":
        raise UserError("--long rewrite is for models of single sentences; --writer excludes it.")
    check_long(long, section_types, select, language, checks, asked.as_one)
    for_all = about.for_all()
    fields = Fields(asked.field, asked.id_field, query=about.query_field, sections=long in BY_HEADINGS)
    reads = {"--section-types": section_types, "--select": select, "--query-file": about.query_file}
    with (
        naming_options("writer", "select"),
        Job(asked, "summarizing", fields, several=len(for_all) > 1, reads=reads) as job,
    ):
        make = partial(Writing, job.layout, served, for_all, long, section_types, select, language, checks)
        return job.run(make, "cpu", READ_AS)


class Writing(Worker):
    """Writes summaries by a model on a server.

    Args:
        layout: of the results.
        served: the model.
        queries: each document is summarized once for each of them.
        long, types, select: of `ServedSummarizer`.
        language: of the documents; None to detect it.
        checks: look for the sentences of summaries in their documents.
    """

    def __init__(
        self,
        layout: Layout,
        served: Served,
        queries: Sequence[str],
        long: str,
        types: Path | None,
        select: str | None,
        language: str | None,
        checks: bool,
    ) -> None:
        from pyramidions.data.section_types import section_types
        from pyramidions.extract.methods import find_method
        from pyramidions.inference.extractor import Extractor
        from pyramidions.inference.served_model import ServedModel, ServedSummarizer

        find_method(select or "hiporank", "select")
        model = ServedModel(str(served.writer), str(served.writer_model))
        words, reads = served.writer_words or WRITER_WORDS, served.writer_reads or WRITER_READS
        extractor = Extractor(select or "hiporank", language=language)
        self._summarizer = ServedSummarizer(model, long, extractor, words, reads, section_types(types))
        self._layout, self._served, self._queries, self._long, self._checks = layout, served, queries, long, checks
        self._language = language

    def results(self, documents: "Iterable[InputText]", report: Report) -> Iterator[Result]:
        """Yield the summary of each document, or one for each query."""
        from pyramidions.inference.queries import each_query
        from pyramidions.inference.served_model import UnusableServerError

        for document in each_query(documents, self._queries) if self._queries else documents:
            name = document.origin.name
            try:
                found = self._summarizer.summarize(document.text, document.query)
            except UnusableServerError:
                raise
            except UserError as error:
                report.fail(UserError(f"{name}: {_named(error)}"))
                continue
            finally:
                report.add(2 * document.size)
            written = "\n\n".join(text for _, text in found.sections) or found.text
            checked = Checked(written, document.text if self._checks else None, self._language)
            language = found.language or checked.language
            remarks = () if self._language or language is None else (language,)
            yield Result(document.origin, self._body(found, name, document.query, checked), remarks)

    def _body(self, found: "WrittenSummary", name: str, query: str | None, checked: Checked) -> dict[str, Any] | str:
        if self._layout.kind == "json":
            sections = [{"heading": heading, "summary": text} for heading, text in found.sections]
            return {
                "long": self._long,
                "writer": self._served.writer_model,
                **({} if query is None else {"query": query}),
                "summary": found.text,
                "pieces": found.parts,
                "document_tokens": found.document_tokens,
                "read_tokens": found.read_tokens,
                **({"sections": sections} if sections else {}),
                **({"cut": True} if found.was_cut else {}),
                **({} if found.language is None else {"language": found.language}),
                **({} if found.note is None else {"note": found.note}),
                **checked.about,
            }
        notes = [*self._notes(found), *checked.notes]
        return as_text(self._layout, name, notes, query, found.sections or [("", found.text)])

    def _notes(self, found: "WrittenSummary") -> Iterator[str]:
        read, whole = f"{found.read_tokens:,}", f"{found.document_tokens:,}"
        if found.sections:
            yield f"by section: {', '.join(heading for heading, _ in found.sections)}"
        elif found.parts > 1:
            yield f"{'the summary of the summaries of' if self._long == 'merge' else 'in'} {found.parts} pieces"
        if found.note is not None:
            yield found.note
        if found.read_tokens < found.document_tokens:
            yield f"about {read} of {whole} tokens were read"
        if found.was_cut:
            yield "the server cut the summary at its limit"


def _named(error: UserError) -> str:
    return str(error).replace("`budget`", "--writer-reads").replace("`query`", "its query")
