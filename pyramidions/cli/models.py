"""`pyramidions models`."""

from typing import NamedTuple

import click

from pyramidions.cli.outputs import columns


class KnownModel(NamedTuple):
    """A model on the hub, as its card describes it."""

    name: str  # on the hub
    tokens: int  # of the longest document that it reads at once
    documents: str  # that it was trained on
    millions: int  # of parameters
    licence: str  # of the weights


#: The smallest first. The facts are those of model cards; what the models write has not been scored here.
KNOWN = (
    KnownModel("google-t5/t5-small", 512, "news", 61, "Apache-2.0"),
    KnownModel("pszemraj/led-base-book-summary", 16_384, "books", 162, "BSD-3-Clause"),
    KnownModel("pszemraj/long-t5-tglobal-base-16384-book-summary", 16_384, "books", 248, "BSD-3-Clause, Apache-2.0"),
    KnownModel("sshleifer/distilbart-cnn-12-6", 1024, "news", 306, "Apache-2.0"),
    KnownModel("facebook/bart-large-cnn", 1024, "news", 406, "MIT"),
    KnownModel("allenai/led-large-16384-arxiv", 16_384, "papers", 460, "Apache-2.0"),
    KnownModel("google/bigbird-pegasus-large-pubmed", 4096, "biomedical papers", 577, "Apache-2.0"),
    KnownModel("csebuetnlp/mT5_multilingual_XLSum", 512, "news in 45 languages", 582, "CC-BY-NC-SA-4.0"),
)


@click.command(short_help="List pretrained models to summarize with.")
def models() -> None:
    """List pretrained models on the Hugging Face hub that write summaries.

    `pyramidions summarize NAME paper.pdf` downloads one and writes with it. If a document is too long for the model,
    the model reads its most important sentences; --long has other ways. Any other BART, mBART-50, LED, PRIMERA,
    PEGASUS, BigBird-PEGASUS, PEGASUS-X, T5, Flan-T5, mT5 or LongT5 can be named, too. The facts are those of the model
    cards.

    \b
    Example:
      pyramidions models
      pyramidions summarize facebook/bart-large-cnn paper.pdf
    """
    rows = [("model", "reads tokens", "trained on", "parameters", "licence")]
    rows += [(m.name, f"{m.tokens:,}", m.documents, f"{m.millions}M", m.licence) for m in KNOWN]
    for line in columns(rows, range(5)):
        click.echo(line)
