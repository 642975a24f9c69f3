"""The corpora of the field by name: one description each, and what reads them."""

from pyramidions.corpora.core import Form, KnownCorpus
from pyramidions.corpora.facts import data_size, facts
from pyramidions.corpora.names import find_corpus
from pyramidions.corpora.reading import Reading, configuration, read_corpus
from pyramidions.corpora.table import KNOWN

__all__ = [
    "KNOWN",
    "Form",
    "KnownCorpus",
    "Reading",
    "configuration",
    "data_size",
    "facts",
    "find_corpus",
    "read_corpus",
]
