"""Pairs documents with queries, and refuses queries that a model cannot answer."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.documents.source import InputText, Refuse
from pyramidions.files.lines import read_lines
from pyramidions.inference.reader import Reader


def with_queries(texts: Iterable[str], query: str | Iterable[str] | None) -> Iterator[tuple[str, str | None]]:
    """Yield each document with its query.

    Args:
        texts: the documents, read one by one.
        query: one for all of them, or one for each.

    Raises:
        UserError: it is neither, or there is not one for each document.
    """
    if query is None or isinstance(query, str):
        yield from zip(texts, repeat(query))
        return
    asked, rule = iter(query), "`query` must be a text, or a list of one text for each document"
    for text in texts:
        if (following := next(asked, None)) is None:
            raise UserError(f"{rule}, but there are fewer.")
        yield text, following
    if next(asked, None) is not None:
        raise UserError(f"{rule}, but there are more.")


def each_query(documents: Iterable[InputText], queries: Sequence[str]) -> Iterator[InputText]:
    """Yield each document once for each query."""
    for document in documents:
        before = (document.number - 1) * len(queries)
        for number, query in enumerate(queries, before + 1):
            yield document._replace(query=query, size=document.size // len(queries), number=number)


def answerable(documents: Iterable[InputText], reader: Reader, refuse: Refuse) -> Iterator[InputText]:
    """Yield the documents whose own query a model can read.

    Args:
        documents: each with its query.
        reader: of the model.
        refuse: receives an error for each of the others.
    """
    for document in documents:
        try:
            reader.asking(document.query)
        except UserError as error:
            # The query is no argument of the caller, but part of a record.
            refuse(UserError(f"{document.origin.name}: {str(error).replace('`query`', 'its query', 1)}"))
        else:
            yield document


def read_queries(path: Path) -> list[str]:
    """Return the queries of a file, one a line.

    Raises:
        UserError: it cannot be read, or holds no text.
    """
    queries = [line.strip() for line in read_lines(path) if line.strip()]
    if not queries:
        raise UserError(f"{path} must hold a query a line, but holds none.")
    return queries
