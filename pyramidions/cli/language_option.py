"""The option with the language of documents."""

import click

from pyramidions.cli.naming import naming_options
from pyramidions.text.language import ENGLISH, LANGUAGES


def _known(_: click.Context, __: click.Parameter, code: str | None) -> str | None:
    if code is None:
        return None
    from pyramidions.text.language import Language

    with naming_options("language"):
        # Of "de-AT", the language counts.
        return Language(code.lower().partition("-")[0]).code


#: What a note at the end says of documents, by the language that was detected.
READ_AS = {code: f"was read as {code}; --language sets another language." for code in LANGUAGES if code != ENGLISH}
#: The language of documents, as `language`; None to detect it.
language_option = click.option(
    "--language",
    metavar="CODE",
    callback=_known,
    help="Language of the documents, an ISO 639-1 code such as de. It sets the rules for sentences and words.  "
    "[default: detected per document]",
)
