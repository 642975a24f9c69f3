"""Extractive summaries of texts, in a few lines of Python."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyramidions.base.arguments import Count, checked, refuse_path, shown
from pyramidions.base.device import Device
from pyramidions.base.errors import UserError
from pyramidions.base.optional import optional_library
from pyramidions.documents.file_formats import holds_records
from pyramidions.documents.source import read_file
from pyramidions.extract import RANKERS, Budget, Oracle, SelectionRules
from pyramidions.extract.concepts import ConceptRanker, covered, load_concepts
from pyramidions.extract.concepts.words import words_in
from pyramidions.extract.extraction import Extraction, extract
from pyramidions.extract.methods import AUTO_METHOD, HIPORANK, ORACLE, find_method, suited
from pyramidions.extract.selection import WORDS, Redundancy
from pyramidions.extract.vectors import SentenceVectors
from pyramidions.text.headings import Lines
from pyramidions.text.language import Language
from pyramidions.text.outline import Outline
from pyramidions.text.turns import read_outline

# Only a trained extractor needs torch.
if TYPE_CHECKING:
    from pyramidions.inference.learned_ranker import LearnedRanker


class Ranked(NamedTuple):
    """A document whose sentences are ranked."""

    outline: Outline  # of the document
    reference: str | None = None  # the summary that the method "oracle" needs
    query: str | None = None  # what the summary answers, for a model of concepts


class Extractor:
    """Picks the sentences of a document that make a summary.

    Examples:
        >>> from pyramidions import Extractor
        >>> extraction = Extractor().extract("A long paper ...", words=220)         # doctest: +SKIP
        >>> [sentence.text for sentence in extraction.sentences]                         # doctest: +SKIP

    Args:
        method: "auto", which uses "meetings" for English dialogues, "biomedical" for other English documents of 15 to
            10,000 sentences, and "hiporank" for the rest; "biomedical" or "meetings", which come with the package;
            "hiporank", "textrank", "lead" or "oracle"; or where a trained extractor lies: a checkpoint, a folder of
            checkpoints (the best is taken), an exported model, or a model of concepts.
        options: of a method, as in its docstring: ``{"mu": 0.5}`` of `pyramidions.extract.HipoRank`.
        vectors: of sentences, for methods that compare them; the method's own if None. With them, "auto" is HipoRank.
        device: of a trained extractor, such as "cpu" or "cuda:1"; a GPU if there is one, if None.
        precision: of a trained extractor, as in `Summarizer`; float32 if None.
        language: of the documents, an ISO 639-1 code: its rules end sentences, and say what words and stop words are.
            None to detect it.

    Attributes:
        precision: of a trained extractor, or of the encoder that makes ``vectors``, and a sentence about that and the
            machine; None without either.

    Raises:
        UserError: there is no such method, option, device, precision or language; or the method takes none.
    """

    @checked
    def __init__(
        self,
        method: str | Path = AUTO_METHOD,
        options: Mapping[str, Any] | None = None,
        *,
        vectors: SentenceVectors | None = None,
        device: Device | None = None,
        precision: str | None = None,
        language: str | None = None,
    ) -> None:
        self.language = None if language is None else Language(language).code
        self.method = HIPORANK if str(method) == AUTO_METHOD and vectors is not None else str(method)
        # With "auto": the extractors that were needed, and the last document with its own.
        self._taken: dict[str, Extractor] = {}
        self._last: tuple[Outline, Extractor] | None = None
        found = find_method(self.method, "method", ORACLE, AUTO_METHOD)
        # The oracle's rankers, and those of concepts, differ between documents.
        named = None if found.model is not None or found.name in (ORACLE, AUTO_METHOD) else found.name
        if vectors is not None and (named is None or "vectors" not in RANKERS.arguments(named)):
            raise UserError(f"The method {self.method!r} compares no sentences: vectors have no effect.")
        if options and named is None:
            raise UserError(
                f"The method {self.method!r} has no options, but was given {', '.join(map(repr, options))}."
            )
        for name, value in (("device", device), ("precision", precision)):
            if value is not None and found.network is None:
                raise UserError(f"`{name}` is for trained extractors, but the method is {self.method!r}.")
        self._concepts = None if found.concepts is None else load_concepts(found.concepts)
        self._learned = None if found.network is None else _learned(found.network, device, precision)
        self._ranker = self._learned if named is None else RANKERS.build(named, options or {}, vectors=vectors)
        computes = vectors if vectors is not None else self._learned
        self.precision = getattr(computes, "precision", None)

    def __repr__(self) -> str:
        return f"Extractor({self.method!r})"

    @checked
    def extract(
        self,
        text: str,
        *,
        words: Count | None = None,
        sentences: Count | None = None,
        redundancy: Redundancy | None = None,
        reference: str | None = None,
        query: str | None = None,
    ) -> Extraction:
        """Extract sentences of a document.

        Args:
            text: the document, with its line breaks; markdown headings and headings of plain text begin sections.
            words: most words of all sentences. If neither this nor ``sentences`` is given, the number that a trained
                extractor learned to extract, else `WORDS`.
            sentences: most sentences.
            redundancy: "none", "trigrams" or "mmr", see `pyramidions.extract.SelectionRules`; if None, that of a
                trained extractor, else "none".
            reference: summary that the method "oracle" chooses by.
            query: what the summary answers, for a model of concepts: it wants the words of the query more.

        Raises:
            UserError: an argument that breaks a rule, the path of a file, or a document without a sentence.
        """
        refuse_path("text", text, "use `extract_file`")
        return self._extract(text, self.rules(words, sentences, redundancy), reference, query)

    @checked
    def extract_file(
        self,
        path: str | Path,
        *,
        words: Count | None = None,
        sentences: Count | None = None,
        redundancy: Redundancy | None = None,
        reference: str | None = None,
        query: str | None = None,
    ) -> Extraction:
        """Extract sentences of a file that holds one document.

        The path ends in .txt, .md, .html, .htm, .pdf, .docx, .pptx, .epub, .xml, .nxml, .tex, .tar.gz, .vtt or .srt.
        The other arguments and the errors are those of `extract`; a UserError also says that there is no such file, or
        that it cannot be read, or holds records.
        """
        path = Path(path)
        if holds_records(path):
            raise UserError(f"`path` must hold one document, but {path} holds one a line: use `pyramidions extract`.")
        rules = self.rules(words, sentences, redundancy)
        return self._extract(read_file(path).text, rules, reference, query)

    def _extract(self, text: str, rules: SelectionRules, reference: str | None, query: str | None) -> Extraction:
        if reference is not None and self.method != ORACLE:
            raise UserError(f"`reference` is for the method {ORACLE!r}, but the method is {self.method!r}.")
        self.check_query(query)
        found = document_outline(text, language=self.language)
        (scores,) = self.rank([Ranked(found, reference, query)], rules.budget)
        return extract(found, scores, rules)

    @checked
    def rules(
        self, words: Count | None = None, sentences: Count | None = None, redundancy: Redundancy | None = None
    ) -> SelectionRules:
        """Return how sentences are selected, with the defaults of the method or of the trained extractor."""
        own = SelectionRules(Budget(WORDS)) if self._ranker is None else self._ranker.rules
        if self._concepts is not None:
            own = ConceptRanker(self._concepts).rules
        budget = own.budget if words is None and sentences is None else Budget(words, sentences)
        return own._replace(budget=budget, redundancy=redundancy or own.redundancy)

    @property
    def reads_queries(self) -> bool:
        """Whether the method is a model of concepts, which alone reads queries, or may be one."""
        return self._concepts is not None or self.method == AUTO_METHOD

    @checked
    def selects_by(self, query: str) -> bool:
        """Whether the method is a model of concepts, and a query has a word that it could look for."""
        return self._concepts is not None and bool(words_in([query], self._concepts.language)[0].content.any())

    @property
    def trained_language(self) -> str | None:
        """The language that the method was trained in, of a model of concepts; else None."""
        return None if self._concepts is None else self._concepts.language

    @checked
    def check_query(self, query: str | None, name: str = "query") -> None:
        """Refuse a query, the argument ``name``, that the method does not read, or that asks for no word.

        With "auto", `rank` checks it for the method that suits the document.
        """
        if query is None or self.method == AUTO_METHOD:
            return
        if self._concepts is None:
            raise UserError(
                f"`{name}` is for models of concepts, such as 'meetings', but the method is {self.method!r}."
            )
        if not self.selects_by(query):
            raise UserError(f"`{name}` must hold a word that is no stop word, but is {shown(query)}.")

    @checked
    def rank(self, documents: Iterable[Ranked], limit: Budget) -> Iterator[np.ndarray]:
        """Yield the scores of the sentences of each document; a trained extractor reads several at once.

        "oracle" and a model of concepts keep to ``limit``, the budget of a summary.
        """
        if self._learned is not None:
            yield from self._learned.rank_all(document.outline for document in documents)
            return
        for outline, reference, query in documents:
            extractor = self.suited(outline)
            extractor.check_query(query)
            ranker = extractor._ranker
            if extractor._concepts is not None:
                ranker = ConceptRanker(extractor._concepts, limit, query)
            if ranker is None:
                if reference is None:
                    raise UserError(f"The method {ORACLE!r} needs a `reference`: the summary that it chooses by.")
                ranker = Oracle(reference, limit.words)
            yield ranker.rank(outline)

    @checked
    def suited(self, outline: Outline) -> "Extractor":
        """Return the extractor for a document: with "auto", that of the method that suits it, else this one."""
        if self.method != AUTO_METHOD:
            return self
        if self._last is None or self._last[0] is not outline:
            name = suited(outline)
            if name not in self._taken:
                self._taken[name] = Extractor(name, language=self.language)
            self._last = outline, self._taken[name]
        return self._last[1]

    @checked
    def holds_word_of(self, query: str, extraction: Extraction) -> bool:
        """Whether a document holds a content word of a query, by the language of the model of concepts."""
        language = self.trained_language or extraction.outline.language
        asked, _ = words_in([query], language)
        held, _ = words_in(list(extraction.outline.texts), language)
        return bool(np.isin(asked.hashes[asked.content], held.hashes).any())

    @checked
    def covered(self, extraction: Extraction, query: str | None = None) -> list[list[tuple[str, float]]] | None:
        """Return the wanted concepts that each extracted sentence is the first to cover, the most wanted first.

        Each has the probability that a summary holds it. None if the document's method is no model of concepts.
        """
        concepts = self.suited(extraction.outline)._concepts
        if concepts is None:
            return None
        chosen = [sentence.position for sentence in extraction.sentences]
        return covered(concepts, extraction.outline, chosen, query)


def document_outline(
    text: str | Lines, on_read: Callable[[int], object] = lambda _: None, language: str | None = None
) -> Outline:
    """Return the outline of a document that can be extracted from; arguments as in `read_outline`."""
    found = read_outline(text, on_read, language)
    if not found.units:
        raise UserError("A document must hold text, but holds none.")
    if not found.sentences:
        raise UserError("A document must hold a sentence, but holds headings only.")
    return found


def _learned(path: Path, device: Device | None, precision: str | None) -> "LearnedRanker":
    optional_library("torch", "A trained extractor", extra="torch")
    from pyramidions.inference.learned_ranker import LearnedRanker
    from pyramidions.inference.precision import FLOAT32

    return LearnedRanker.from_pretrained(path, device, precision or FLOAT32)
