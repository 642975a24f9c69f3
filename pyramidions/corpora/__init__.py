"""The corpora of the field by name: one description each, and what reads them."""

from pyramidions.corpora.core import Form, KnownCorpus
from pyramidions.corpora.facts import data_size, facts
from pyramidions.corpora.names import find_corpus
from pyramidions.corpora.reading import Reading, configuration, read_corpus
from pyramidions.corpora.table import KNOWN
from pyramidions.corpora.texts import TEXTS, KnownText, find_text, open_streams

__all__ = [
    "KNOWN",
    "TEXTS",
    "Form",
    "KnownCorpus",
    "KnownText",
    "Reading",
    "configuration",
    "data_size",
    "facts",
    "find_corpus",
    "find_text",
    "open_streams",
    "read_corpus",
]
