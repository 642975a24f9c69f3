"""The option with the language of documents."""

import click

#: Whose rules end sentences, as `language`.
language_option = click.option(
    "--language",
    default="en",
    show_default=True,
    help="Language of the documents, an ISO 639-1 code such as de: its rules end sentences.",
)
