"""Papers in formats that say what is title, abstract and section."""

from pathlib import Path

from pyramidions.documents.latex import may_be_document, read_latex
from pyramidions.documents.paper_xml import Paper, may_be_xml_paper, read_paper
from pyramidions.documents.records import known_ending

_READERS = {
    ".xml": read_paper,
    ".nxml": read_paper,
    ".tex": read_latex,
    ".tar.gz": read_latex,
}
#: How the names of files of papers end.
ENDINGS = tuple(_READERS)


def may_be_paper(path: Path) -> bool:
    """Return whether a file may be a paper; others in XML and LaTeX are many. True for any other format."""
    return may_be_xml_paper(path) and may_be_document(path)


def paper_of(path: Path) -> Paper:
    """Read a paper of any of `ENDINGS`; errors are those of the reader of its format."""
    return _READERS[known_ending(path, ENDINGS)](path)
