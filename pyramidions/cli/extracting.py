"""Workers of `pyramidions extract`: sentences within a budget, or a text of some tokens."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pyramidions.base.errors import UserError
from pyramidions.cli.extract import Selecting
from pyramidions.cli.worker import Layout, Report, Result, Worker, as_text, each_query, listed, refusal
from pyramidions.documents.source import InputText
from pyramidions.extract import Budget, TfIdf
from pyramidions.extract.extraction import Extraction, extract
from pyramidions.extract.methods import HIPORANK, ORACLE
from pyramidions.files.progress import counted
from pyramidions.inference.compression import CHARACTERS, as_markdown, compress, estimate_tokens, tokens_of
from pyramidions.inference.extraction_page import ExtractionPage
from pyramidions.inference.extractor import Extractor, Ranked, document_outline
from pyramidions.inference.precision import AUTO
from pyramidions.text.outline import Outline
from pyramidions.text.words import count_words

# Characters between two steps of the progress bar.
_STEP = 2**16
# How often the sentences of a document are read: twice for tf-idf, and once to tell which are fit, and to count words.
_TIMES = 4


class Extracting(Worker):
    """Extracts sentences."""

    def __init__(
        self,
        layout: Layout,
        selecting: Selecting,
        fitted: TfIdf | None,
        queries: Sequence[str],
        own_queries: bool,
        explains: bool,
    ) -> None:
        self._extractor = extractor = _extractor(selecting, fitted)
        if own_queries and not extractor.reads_queries:
            raise UserError(f"`query_field` is for models of concepts, but the method is {extractor.method!r}.")
        for query in queries:
            extractor.check_query(query)
        self._layout, self._queries = layout, queries
        rules: Any = {name: getattr(selecting, name) for name in ("words", "sentences", "redundancy")}
        self._rules = extractor.rules(**rules)
        self.said = None if extractor.precision is None else extractor.precision.said
        if explains:
            bounds = {name: f"{most:,}" for name, most in self._rules.budget._asdict().items() if most is not None}
            settings = {**bounds, "redundancy": self._rules.redundancy}
            self.page = self._page = ExtractionPage(extractor.method, settings=settings)

    def results(self, documents: Iterable[InputText], report: Report) -> Iterator[Result]:
        """Yield the extract of each document, or one for each query."""
        # A trained extractor reads some documents at once; no more are held, and these without their texts.
        waiting: deque[tuple[InputText, Outline, _Half]] = deque()
        for scores in self._extractor.rank(self._outlined(documents, report, waiting), self._rules.budget):
            document, outline, ranking = waiting.popleft()
            found = extract(outline, scores, self._rules)
            ranking.finish()
            if self.page is not None:
                covers = self._extractor.covered(found, document.query)
                asked = "" if document.query is None else f": {document.query}"
                by = self._extractor.suited(outline).method
                self._page.add(f"{document.origin.name}{asked}", found, document.reference, covers, by)
            yield self._result(document, found)

    def _outlined(
        self, documents: Iterable[InputText], report: Report, waiting: "deque[tuple[InputText, Outline, _Half]]"
    ) -> Iterator[Ranked]:
        for document in each_query(documents, self._queries):
            reading = _Half(document.size, 1, report)
            try:
                if self._extractor.method == ORACLE and document.reference is None:
                    raise UserError(f"The method {ORACLE!r} needs a reference summary, which only a .jsonl file has.")
                outline = document_outline(document.lines or document.text, reading.add, self._extractor.language)
                self._extractor.suited(outline).check_query(document.query)
            except UserError as error:
                report.fail(refusal(document, error))
                continue
            finally:
                reading.finish()
            ranking = _Half(document.size, _TIMES, report)
            outline.sentences.on_read = ranking.add
            # The outline has all of the text that is needed.
            document = document._replace(text="", lines=None)
            waiting.append((document, outline, ranking))
            yield Ranked(outline, document.reference, document.query)

    def _result(self, document: InputText, found: Extraction) -> Result:
        remarks = tuple(self._remarks(found, document.query))
        if self._layout.kind == "json":
            by = {"selected_by": self._extractor.suited(found.outline).method}
            return self._with_query(document, by | found.to_dict(), remarks)
        is_list = self._layout.kind == "list"
        text = listed(found.by_section(), self._layout.width) if is_list else found.text
        return Result(document.origin, as_text(self._layout, document.origin.name, document.query, text), remarks)

    def _with_query(self, document: InputText, body: dict[str, Any], remarks: tuple[str, ...]) -> Result:
        asked = {} if document.query is None else {"query": document.query}
        return Result(document.origin, {**asked, **body}, remarks)

    def _remarks(self, found: Extraction, query: str | None) -> Iterator[str]:
        words, language = self._rules.budget.words, found.outline.language
        extractor = self._extractor.suited(found.outline)
        if extractor is not self._extractor:
            yield f"by {extractor.method}"
        if extractor.method == HIPORANK and not found.outline.has_sections:
            yield "one section"
        if not found.sentences:
            yield "empty"
        elif extractor.reads_queries and max(each.score for each in found.sentences) < 0:
            yield "unknown"
        if query is not None and not self._extractor.holds_word_of(query, found):
            yield "no word"
        if extractor.trained_language not in (None, language):
            yield "other language"
        # Several sentences never exceed the budget.
        if words is not None and len(found.sentences) == 1 and count_words(found.text) > words:
            yield "longer"
        if self._extractor.language is None:
            yield language


class Shortening(Extracting):
    """Keeps what fits into a number of tokens; a document that fits is kept whole. Arguments as of `Extracting`."""

    def __init__(self, layout: Layout, selecting: Selecting, *others: Any) -> None:
        super().__init__(layout, selecting, *others)
        self._tokens = tokens = selecting.tokens or 0
        # No number of words bounds a result.
        self._rules = self._rules._replace(budget=Budget(sentences=tokens))
        self._count = estimate_tokens if selecting.tokenizer is None else tokens_of(selecting.tokenizer)
        self._counted = f" (estimated, {CHARACTERS} characters each)" if selecting.tokenizer is None else ""

    def results(self, documents: Iterable[InputText], report: Report) -> Iterator[Result]:
        """Yield what is kept of each document, or what is kept for each query."""
        for document in each_query(documents, self._queries):
            report.add(document.size)
            try:
                result = self._shortened(document, report)
            except UserError as error:
                report.fail(refusal(document, error, "--tokens"))
                continue
            finally:
                report.add(document.size)
            yield result

    def _shortened(self, document: InputText, report: Report) -> Result:
        self._extractor.check_query(document.query)
        text = as_markdown(document.text)
        remarks: tuple[str, ...] = ("fits",)
        (whole,) = self._count([text])
        body: dict[str, Any] = {"summary": text, "language": None, "sentences": None}
        body |= {"tokens": whole, "document_tokens": whole}
        if whole > self._tokens:
            query, redundancy = document.query, self._rules.redundancy
            found = compress(document.text, self._extractor, self._tokens, self._count, query, redundancy)
            extraction = found.extraction
            if not self._layout.named:
                numbers = f"{len(extraction.sentences):,} of {counted(len(extraction.scores), 'sentence')}"
                report.note(f"Kept {found.tokens:,} of {whole:,} tokens{self._counted}: {numbers}.")
            text, remarks = found.text, tuple(self._remarks(extraction, query))
            body |= {**extraction.to_dict(), "summary": text, "tokens": found.tokens}
        if self._layout.kind == "json":
            return self._with_query(document, body, remarks)
        return Result(document.origin, as_text(self._layout, document.origin.name, document.query, text), remarks)


class _Half:
    """Reports half of the work on a document of ``size`` bytes, by the characters that are read ``times`` over."""

    def __init__(self, size: int, times: int, report: Report) -> None:
        self._left: float = size
        self._times = times
        self._report = report
        self._waiting = 0

    def add(self, characters: int) -> None:
        """Count characters; the bar need not know each sentence."""
        self._waiting += characters
        if self._waiting > _STEP:
            self._move(min(self._waiting / self._times, self._left))

    def finish(self) -> None:
        """Count what is left."""
        self._move(self._left)

    def _move(self, size: float) -> None:
        self._waiting, self._left = 0, self._left - size
        self._report.add(size)


def _extractor(selecting: Selecting, fitted: TfIdf | None) -> Extractor:
    device, precision, language = selecting.device, selecting.precision, selecting.language
    given: dict[str, Any] = {"vectors": fitted, "device": device, "precision": precision}
    if selecting.encoder is not None:
        from pyramidions.inference.sentence_vectors import EncoderVectors

        given = {"vectors": EncoderVectors.from_pretrained(selecting.encoder, device, precision or AUTO)}
    return Extractor(selecting.method.kind, dict(selecting.method.options), language=language, **given)
