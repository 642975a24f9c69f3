"""Workers of `pyramidions summarize`: a model here, or one on a server."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.reading import WRITER_READS, WRITER_WORDS
from pyramidions.cli.job_options import Served, model_name
from pyramidions.cli.worker import Layout, Report, Result, Worker, as_text, each_query, listed, refusal

if TYPE_CHECKING:
    from pyramidions.documents.source import DocumentOrigin, InputText
    from pyramidions.inference.summary import Coverage, Summary

# Numbers and names that a note lists.
_NAMED = 5


class Reading(NamedTuple):
    """How documents are read, and summaries laid out."""

    layout: Layout  # of the results
    queries: Sequence[str]  # each document is summarized once for each of them
    # long, types, select, language: of `Summarizer.long_reader`.
    long: str
    types: Path | None
    select: str | None
    language: str | None
    checks: bool  # look for the sentences of summaries in their documents

    def result(
        self,
        origin: "DocumentOrigin",
        document: str | None,
        summaries: "list[Summary]",
        about: Mapping[str, Any] | None = None,
    ) -> Result:
        """Return the result of a document, whose text is there where its summary is checked."""
        from pyramidions.inference.summary import as_plain, by_section

        language, notes, check = summaries[0].coverage.language, _notes(summaries), {}
        if self.checks and document is not None:
            from pyramidions.scoring.summary_check import check_summary

            found = check_summary("\n\n".join(summary.text for summary in summaries), document, self.language)
            language = language or found.document.language
            check = {"language": found.document.language, "check": found.to_dicts()}
            missing = [each for sentence in found.sentences for each in sentence.missing]
            named = f" ({', '.join(missing[:_NAMED])}{', …' if len(missing) > _NAMED else ''})" if missing else ""
            notes.append(f"{found.told.removesuffix('.')}{named}")
        remarks = () if self.language or language is None else (language,)
        if self.layout.kind == "json":
            return Result(origin, {"long": self.long, **(about or {}), **as_plain(summaries), **check}, remarks)
        parts = by_section(summaries)
        is_list = self.layout.kind == "list"
        text = listed(parts, self.layout.width) if is_list else " ".join(text for _, text in parts)
        return Result(origin, as_text(self.layout, origin.name, summaries[0].query, text, notes), remarks)


#: Options of a search, and of sampling instead.
_SEARCH = ("beam", "min_len", "max_len", "length_penalty", "no_repeat_ngram")
_SAMPLING = ("temperature", "top_k", "top_p", "seed")


class Computing(NamedTuple):
    """How a model on this machine computes and decodes, as the options of `summarize` say."""

    device: str | None
    precision: str
    graphs: bool
    kernels: str | None
    batch_size: int
    sampling: bool
    beam: int | None
    min_len: int | None
    max_len: int | None
    length_penalty: float | None
    no_repeat_ngram: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int | None

    def of_search(self) -> dict[str, Any]:
        """Return the options of the search, None for the model's."""
        return {name: getattr(self, name) for name in _SEARCH}

    def of_sampling(self) -> dict[str, Any]:
        """Return the options of --sampling that are given."""
        return {name: value for name in _SAMPLING if (value := getattr(self, name)) is not None}


class Summarizing(Worker):
    """Writes summaries by a model on this machine."""

    def __init__(self, reading: Reading, model: Path, computing: Computing, own_queries: bool, explains: bool) -> None:
        from pyramidions.inference.decoding_options import SamplingOptions
        from pyramidions.inference.explanation_page import ExplanationPage
        from pyramidions.inference.reader import check_queries
        from pyramidions.inference.search import decoding_settings
        from pyramidions.inference.summarizer import Summarizer

        sampled = SamplingOptions(**computing.of_sampling()) if computing.sampling else None
        self._summarizer = Summarizer.from_pretrained(
            model, computing.device, computing.precision, computing.graphs, computing.kernels
        )
        check_queries(self._summarizer.model.queries, bool(reading.queries) or own_queries)
        for query in reading.queries:
            self._summarizer.reader.asking(query)
        self._decoding = decoding_settings(self._summarizer.model, **computing.of_search(), sampling=sampled)
        self._reader = self._summarizer.long_reader(reading.long, reading.types, reading.select, reading.language)
        self._reading = reading
        self._own_queries = own_queries
        self._batch_size = computing.batch_size
        self.said = self._summarizer.precision.said
        if explains:
            self.page = self._page = ExplanationPage(model_name(model))

    def results(self, documents: "Iterable[InputText]", report: Report) -> Iterator[Result]:
        from pyramidions.inference.stream import Stream

        documents = each_query(documents, self._reading.queries)
        if self._own_queries:
            documents = self._answerable(documents, report)
        # Those that are read, and not yet summarized.
        read = deque["InputText"]()
        if self._reading.checks:
            documents = _noted(documents, read)
        stream = Stream(self._summarizer, self._reader, self._decoding, report.add, report.fail)
        if self.page is not None:
            found = stream.explained(documents, self._page)
        else:
            found = stream.summarized(documents, self._batch_size, copied=self._reading.layout.kind == "json")
        for each in found:
            # Those that were refused have no result.
            while self._reading.checks and read[0].origin != each.origin:
                read.popleft()
            document = read.popleft().text if self._reading.checks else None
            yield self._reading.result(each.origin, document, each.summaries)

    def _answerable(self, documents: "Iterable[InputText]", report: Report) -> "Iterator[InputText]":
        """Yield the documents whose own query the model can read."""
        for document in documents:
            try:
                self._summarizer.reader.asking(document.query)
            except UserError as error:
                report.fail(refusal(document, error))
            else:
                yield document


class Writing(Worker):
    """Writes summaries by a model on a server."""

    def __init__(self, reading: Reading, served: Served) -> None:
        from pyramidions.data.section_types import section_types
        from pyramidions.extract.methods import AUTO_METHOD, find_method
        from pyramidions.inference.extractor import Extractor
        from pyramidions.inference.served_model import ServedModel, ServedSummarizer

        method = AUTO_METHOD if reading.select is None else reading.select
        find_method(method, "select", AUTO_METHOD)
        model = ServedModel(str(served.writer), str(served.writer_model))
        words, reads = served.writer_words or WRITER_WORDS, served.writer_reads or WRITER_READS
        extractor = Extractor(method, language=reading.language)
        self._summarizer = ServedSummarizer(model, reading.long, extractor, words, reads, section_types(reading.types))
        self._reading, self._served = reading, served

    def results(self, documents: "Iterable[InputText]", report: Report) -> Iterator[Result]:
        from pyramidions.inference.served_model import UnusableServerError

        for document in each_query(documents, self._reading.queries):
            try:
                found = self._summarizer.summarize(document.text, document.query)
            except UnusableServerError:
                raise
            except UserError as error:
                report.fail(refusal(document, error, "--writer-reads"))
                continue
            finally:
                report.add(2 * document.size)
            about = {"writer": self._served.writer_model}
            yield self._reading.result(document.origin, document.text, found, about)


def _noted(documents: "Iterable[InputText]", read: "deque[InputText]") -> "Iterator[InputText]":
    for document in documents:
        read.append(document)
        yield document


def _notes(summaries: list["Summary"]) -> list[str]:
    """Return notes on how a summary was made, for its reader."""
    first = summaries[0].coverage
    notes = [note for note in (first.note, _how(summaries)) if note is not None]
    if first.heading is None and first.sentences is not None and len(summaries) > 1:
        return notes
    if first.heading is None and (short := summaries[-1].shortened_to) is not None:
        notes.append(f"{'the last piece' if len(summaries) > 1 else 'the text'} is short: at most {short} tokens")
    notes += _not_read(summaries)
    if any(summary.ended_early for summary in summaries):
        notes.append("the server cut the summary at its limit")
    return notes


def _how(summaries: list["Summary"]) -> str | None:
    first, several = summaries[0].coverage, len(summaries) > 1
    if first.heading is not None:
        return f"by section: {', '.join(str(summary.coverage.heading) for summary in summaries)}"
    if several and first.sentences is not None:
        return f"{_sentences(first)}, were rewritten one by one"
    if summaries[0].pieces:
        return f"the summary of the summaries of {len(summaries[0].pieces)} pieces"
    return f"in {len(summaries)} pieces, summarized one by one" if several else None


def _sentences(coverage: "Coverage") -> str:
    number, of = coverage.sentences or (0, 0)
    return f"{number:,} of {of:,} sentences, selected by {coverage.selected_by}"


def _not_read(summaries: list["Summary"]) -> list[str]:
    first = summaries[0].coverage
    read = sum(summary.read_tokens for summary in summaries)
    whole = sum(summary.document_tokens for summary in summaries)
    if first.sentences is not None:
        return [f"{_sentences(first)}, were read"]
    if first.heading is not None:
        cut = [str(summary.coverage.heading) for summary in summaries if summary.was_cut]
        notes = [f"only the beginning of {', '.join(cut)} was read"] if cut else []
        left_out = sum(summary.coverage.left_out for summary in summaries)
        return notes + [f"{left_out:,} of {whole + left_out:,} tokens stand in none of these sections"] * bool(left_out)
    of_each = f", an equal share of each of {first.documents} documents" if first.documents > 1 else ""
    about = "about " if isnan(summaries[0].score) else ""
    return [f"only the first {about}{read:,} of {whole:,} tokens were read{of_each}"] * (read < whole)
