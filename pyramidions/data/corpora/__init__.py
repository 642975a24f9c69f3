"""The corpora of the field by name: one description each, and what reads them."""

from pyramidions.data.corpora.reading import Reading, configuration, read_corpus
from pyramidions.data.corpora.table import KNOWN, Form, KnownCorpus, data_size, facts, find_corpus
from pyramidions.data.corpora.texts import TEXTS, KnownText, find_text, open_streams

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
