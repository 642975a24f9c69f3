"""Options of `pyramidions summarize --writer`: a language model on a server writes."""

from typing import NamedTuple

import click

from pyramidions.base.errors import UserError
from pyramidions.base.reading import WRITER_KEY, WRITER_READS, WRITER_WORDS
from pyramidions.cli.naming import option
from pyramidions.cli.option_groups import option_group

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
