"""Extractive summaries of texts, in a few lines of Python."""

from collections.abc import Mapping
from typing import Any

from pyramidions.errors import UserError
from pyramidions.extract import RANKERS, Budget, Oracle, Ranker, TfIdf
from pyramidions.extract.extraction import Extraction, extract
from pyramidions.extract.vectors import SentenceVectors
from pyramidions.text.outline import outline

#: Chooses by the reference summary: a bound of what extraction can reach.
ORACLE = "oracle"
METHODS = (*RANKERS.names, ORACLE)
WORDS = 220  #: of a summary, unless a budget is given


class Extractor:
    """Picks the sentences of a document that make a summary.

    >>> from pyramidions import Extractor
    >>> extraction = Extractor("hiporank").extract("A long paper ...", words=220)   # doctest: +SKIP
    >>> [sentence.text for sentence in extraction.sentences]                         # doctest: +SKIP

    Args:
        method: one of `METHODS`.
        options: of the method, as in its docstring: ``{"mu": 0.5}`` of `pyramidions.extract.HipoRank`.
        vectors: of sentences, for the methods that compare them; tf-idf fitted to each document if None.

    Raises:
        UserError: there is no such method or option.
    """

    def __init__(
        self,
        method: str = "hiporank",
        options: Mapping[str, Any] | None = None,
        *,
        vectors: SentenceVectors | None = None,
    ) -> None:
        self.method = method
        self._ranker = None if method == ORACLE else _ranker(method, options or {}, vectors)
        if self._ranker is None and options:
            raise UserError(f"The method {ORACLE!r} has no options, but was given {', '.join(map(repr, options))}.")

    def extract(
        self,
        text: str,
        *,
        words: int | None = None,
        sentences: int | None = None,
        redundancy: str = "none",
        reference: str | None = None,
    ) -> Extraction:
        """Extract sentences of a document.

        Args:
            text: the document, with its line breaks; markdown headings and headings of plain text begin sections.
            words: most words of all sentences; `WORDS` if neither this nor ``sentences`` is given.
            sentences: most sentences.
            redundancy: "none", "trigrams" or "mmr", see `pyramidions.extract.select`.
            reference: summary that the method "oracle" chooses by.

        Raises:
            UserError: an argument that breaks a rule, or a document without a sentence.
        """
        if not isinstance(text, str):
            raise UserError(f"`text` must be a single document, but is a {type(text).__name__}.")
        budget = Budget(WORDS if words is None and sentences is None else words, sentences)
        budget.check()
        found = outline(text)
        if not found.sentences:
            raise UserError("A document must hold a sentence, but holds headings only." if found.units else _NO_TEXT)
        ranker = self._ranker
        if ranker is None:
            if reference is None:
                raise UserError(f"The method {ORACLE!r} needs a `reference`: the summary that it chooses by.")
            ranker = Oracle(reference, budget.words)
        return extract(found, ranker, budget, redundancy)


_NO_TEXT = "A document must hold text, but holds none."


def _ranker(method: str, options: Mapping[str, Any], vectors: SentenceVectors | None) -> Ranker:
    if method not in RANKERS.names:
        raise UserError(f"`method` must be one of {', '.join(METHODS)}, but is {method!r}.")
    if vectors is not None and not RANKERS.takes(method, "vectors"):
        raise UserError(f"The method {method!r} compares no sentences: vectors of them change nothing.")
    try:
        return RANKERS.build(method, options, vectors=vectors or TfIdf())
    except ValueError as error:
        raise UserError(str(error)) from None
