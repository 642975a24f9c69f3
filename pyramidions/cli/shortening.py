"""What `extract --tokens` does to documents."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyramidions.base.errors import UserError
from pyramidions.cli.extract import Extracting
from pyramidions.cli.worker import Report, Result
from pyramidions.extract import Budget
from pyramidions.files.progress import counted
from pyramidions.inference.compression import CHARACTERS, as_markdown, compress, estimate_tokens, tokens_of
from pyramidions.inference.extraction_stream import Extracted
from pyramidions.inference.queries import each_query

if TYPE_CHECKING:
    from pyramidions.documents.source import InputText


class Shortening(Extracting):
    """Keeps what fits into a number of tokens; a document that fits is kept whole.

    Args:
        tokens: of a result at most.
        tokenizer: counts them; None for an estimate.
        arguments: of `Extracting`.
    """

    def __init__(self, tokens: int, tokenizer: str | None, *arguments: Any) -> None:
        super().__init__(*arguments, explains=False)
        # No number of words bounds a result.
        self._rules = self._rules._replace(budget=Budget(sentences=tokens))
        self._tokens = tokens
        self._count = estimate_tokens if tokenizer is None else tokens_of(tokenizer)
        self._counted = f" (estimated, {CHARACTERS} characters each)" if tokenizer is None else ""

    def results(self, documents: "Iterable[InputText]", report: Report) -> Iterator[Result]:
        """Yield what is kept of each document, or what is kept for each query."""
        for document in each_query(documents, self._queries) if self._queries else documents:
            report.add(document.size)
            try:
                result = self._shortened(document, report)
            except UserError as error:
                said = str(error).replace("`budget`", "--tokens", 1).replace("`query`", "its query", 1)
                report.fail(UserError(f"{document.origin.name}: {said}"))
                continue
            finally:
                report.add(document.size)
            yield result

    def _shortened(self, document: "InputText", report: Report) -> Result:
        self._extractor.check_query(document.query)
        text = as_markdown(document.text)
        (whole,) = self._count([text])
        if whole <= self._tokens:
            about = {"summary": text, "language": None, "sentences": None, "tokens": whole, "document_tokens": whole}
            return self._result(document, about, ("fits",))
        query, redundancy = document.query, self._rules.redundancy
        found = compress(document.text, self._extractor, self._tokens, self._count, query, redundancy)
        extraction = found.extraction
        if not self._layout.named:
            numbers = f"{len(extraction.sentences):,} of {counted(len(extraction.scores), 'sentence')}"
            report.note(f"Kept {found.tokens:,} of {whole:,} tokens{self._counted}: {numbers}.")
        sizes = {"tokens": found.tokens, "document_tokens": whole}
        remarks = self._remarks(Extracted(document.origin, extraction, None, query))
        return self._result(document, {**extraction.to_dict(), "summary": found.text, **sizes}, tuple(remarks))

    def _result(self, document: "InputText", about: dict[str, Any], remarks: tuple[str, ...]) -> Result:
        asked = {} if document.query is None else {"query": document.query}
        if self._layout.kind == "json":
            return Result(document.origin, {**asked, **about}, remarks)
        return Result(document.origin, self._below_name(document.origin, document.query, about["summary"]), remarks)
