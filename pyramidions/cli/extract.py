"""`pyramidions extract`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.job import Job
from pyramidions.cli.job_options import (
    Asked,
    AskedQueries,
    job_command,
    query_options,
    reading_options,
    writing_options,
)
from pyramidions.cli.language_option import READ_AS, language_option
from pyramidions.cli.naming import naming_options
from pyramidions.cli.outputs import PATH
from pyramidions.cli.precision_option import precision_option
from pyramidions.cli.user_dir import user_dir_option
from pyramidions.cli.worker import Layout, Report, Result, Worker, listed
from pyramidions.inference.precision import AUTO
from pyramidions.text.words import count_words

if TYPE_CHECKING:
    from pyramidions.documents.source import InputText, Origin
    from pyramidions.extract import TfIdf
    from pyramidions.inference.extraction_stream import Extracted

# What a note at the end says of documents.
_REMARKS = {
    "one section": "had no headings and counted as one section.",
    "empty": "shared no word with the reference: the summary is empty.",
    "unknown": "held no concept of the model: HipoRank selected.",
    "no word": "held no word of the query: the summary is no answer to it.",
    "other language": "was in another language than the model of concepts was trained in.",
    **READ_AS,
    "longer": "had no sentence within the budget: the summary is the best one, which is longer.",
    "fits": "was kept whole, within --tokens.",
}


@click.command(short_help="Extract the sentences that make a summary.")
@click.argument("files", nargs=-1, type=PATH)
@click.option(
    "--method",
    default="hiporank",
    help="hiporank, textrank or lead, with options as in 'hiporank(mu=0.5)'; oracle, which selects by a reference "
    "summary (--reference-field); biomedical or meetings, which come with the package; or a trained extractor: a "
    "checkpoint, a folder of them, an exported model, or a model of concepts.",
)
@click.option(
    "--words", type=click.IntRange(1), help="Most words of a summary.  [default: 220, or a trained extractor's]"
)
@click.option("--sentences", type=click.IntRange(1), help="Most sentences of a summary.")
@click.option(
    "--tokens",
    type=click.IntRange(1),
    help="Shorten to this many tokens, for the prompt of a language model: Markdown, with headings.",
)
@click.option(
    "--tokenizer",
    metavar="MODEL",
    help="Count --tokens by the tokenizer.json of this model: a file, a folder, or OWNER/NAME on the hub.  [default: "
    "one token for four characters]",
)
@click.option(
    "--redundancy",
    type=click.Choice(["none", "trigrams", "mmr"]),
    help="Skip sentences that share a trigram with a selected one, or select by maximal marginal relevance.  "
    "[default: none, or a trained extractor's]",
)
@click.option(
    "--idf",
    "corpus",
    metavar="CORPUS",
    type=PATH,
    help="Count document frequencies in these documents: a file or a folder.  [default: in the sentences of each "
    "document]",
)
@click.option(
    "--vectors",
    "encoder",
    metavar="MODEL",
    type=PATH,
    help="Compare sentences by the vectors of a trained summarizer's encoder.  [default: tf-idf]",
)
@language_option
@click.option("--device", help="Device of a model, such as cpu or cuda:1.  [default: a GPU if there is one]")
@precision_option(None)
@user_dir_option
@reading_options
@query_options
@click.option("--reference-field", help="Field with the reference summary, for --method oracle.")
@writing_options(
    "with each document by section, its sentences shaded by score and the extracted ones marked",
)
@job_command
def extract(
    asked: Asked,
    method: str,
    tokens: int | None,
    tokenizer: str | None,
    corpus: Path | None,
    encoder: Path | None,
    language: str | None,
    device: str | None,
    precision: str | None,
    about: AskedQueries,
    reference_field: str | None,
    **selection: Any,
) -> int:
    """Extract the sentences of each document that summarize it. No training is needed.

    FILES end in .txt, .md, .html, .pdf, .docx, .pptx, .epub, .xml, .nxml, .tex, .tar.gz, .vtt, .srt or .jsonl
    (or .jsonl.gz, .jsonl.xz), or are folders of such files; without any, or for -, standard input is one document.
    Sections are found by their headings. Sentences are written in reading order; with --json, each with its position,
    its section and its score. Unreadable files and lines of .jsonl files are reported and skipped; the exit status is
    then 1.

    With --tokens, the most important sentences stand below their headings; [...] stands for what is left out. A
    document that fits is kept whole, but for tables and listings of code, which are not read.

    \b
    Example:
      pyramidions extract paper.pdf --explain page.html
      pyramidions extract papers.jsonl --words 220 -o extracts.jsonl
      pyramidions extract meeting.txt --method meetings --query "Why is the remote control yellow?"
      pyramidions extract report.pdf --tokens 4000 -o prompt.md
      pyramidions score extracts.jsonl --data prepared
      pyramidions extract corpus.jsonl -o extracts.jsonl --engine ray --resume
    """
    from pyramidions.documents.source import Fields
    from pyramidions.extract.core import BLOCK
    from pyramidions.extract.methods import ORACLE, find_method, parse_method

    for_all = about.for_all()
    # What is kept of a document may be all of it.
    by_line = tokens is None
    fields = Fields(asked.field, asked.id_field, reference_field, about.query_field, sections=True, by_line=by_line)
    reads: dict[str, str | Path | None] = {"--method": method, "--idf": corpus, "--vectors": encoder}
    reads |= {"--query-file": about.query_file, "--tokenizer": tokenizer}
    with (
        naming_options("method", "device", "precision", "query", "query_field", "tokenizer", *selection),
        Job(asked, "extracting", fields, together=BLOCK, several=len(for_all) > 1, reads=reads) as job,
    ):
        part = parse_method(method, "method", ORACLE)
        if (part.kind == ORACLE) != (reference_field is not None):
            raise UserError(f"--method {ORACLE} and --reference-field must be given together.")
        if corpus is not None and encoder is not None:
            raise UserError("--idf and --vectors exclude each other.")
        _check_tokens(tokens, tokenizer, asked, part.kind, selection)
        fitted = None if corpus is None else _fitted(corpus, asked.field, job.report)
        is_model = encoder is not None or find_method(part.kind, "method", ORACLE).network is not None
        arguments = (
            job.layout,
            selection,
            part.kind,
            dict(part.options),
            fitted,
            encoder,
            language,
            device,
            (precision or AUTO) if is_model else precision,
            for_all,
            about.query_field is not None,
        )
        make: Callable[[], Worker] = partial(Extracting, *arguments, explains=asked.page is not None)
        if tokens is not None:
            from pyramidions.cli.shortening import Shortening

            make = partial(Shortening, tokens, tokenizer, *arguments)
        return job.run(make, device if is_model else "cpu", _REMARKS)


class Extracting(Worker):
    """Extracts sentences.

    Args:
        layout: of the results.
        selection: arguments of `Extractor.rules`.
        method, options: of `Extractor`.
        fitted: vectors that know a corpus, or None.
        encoder: a model whose vectors compare sentences, or None.
        language: of the documents, or None.
        device, precision: of the model.
        queries: each document is extracted from once for each of them.
        own_queries: each document has one of its own.
        explains: gather a page.
    """

    def __init__(
        self,
        layout: Layout,
        selection: Mapping[str, Any],
        method: str,
        options: Mapping[str, Any],
        fitted: "TfIdf | None",
        encoder: Path | None,
        language: str | None,
        device: str | None,
        precision: str | None,
        queries: Sequence[str],
        own_queries: bool,
        *,
        explains: bool,
    ) -> None:
        from pyramidions.inference.extraction_page import ExtractionPage
        from pyramidions.inference.extractor import Extractor

        if encoder is not None:
            from pyramidions.inference.sentence_vectors import EncoderVectors

            vectors = EncoderVectors.from_pretrained(encoder, device, precision or AUTO)
            self._extractor = Extractor(method, options, vectors=vectors, language=language)
        else:
            self._extractor = Extractor(
                method, options, vectors=fitted, device=device, precision=precision, language=language
            )
        if own_queries and not self._extractor.reads_queries:
            raise UserError(f"`query_field` is for models of concepts, but the method is {method!r}.")
        for query in queries:
            self._extractor.check_query(query)
        self._layout = layout
        self._queries = queries
        self._rules = self._extractor.rules(**selection)
        self.said = None if self._extractor.precision is None else self._extractor.precision.said
        if explains:
            bounds = {name: f"{most:,}" for name, most in self._rules.budget._asdict().items() if most is not None}
            self.page = self._page = ExtractionPage(method, settings={**bounds, "redundancy": self._rules.redundancy})

    def results(self, documents: "Iterable[InputText]", report: Report) -> Iterator[Result]:
        """Yield the extract of each document, or one for each query."""
        from pyramidions.inference.extraction_stream import extract_documents
        from pyramidions.inference.queries import each_query

        if self._queries:
            documents = each_query(documents, self._queries)
        told: dict[str, Any] = {"on_progress": report.add, "refuse": report.fail}
        for found in extract_documents(documents, self._extractor, self._rules, **told):
            if self.page is not None:
                covers = self._extractor.covered(found.extraction, found.query)
                asked = "" if found.query is None else f": {found.query}"
                self._page.add(f"{found.origin.name}{asked}", found.extraction, found.reference, covers)
            yield Result(found.origin, self._body(found), tuple(self._remarks(found)))

    def _body(self, found: "Extracted") -> dict[str, Any] | str:
        extraction = found.extraction
        asked = {} if found.query is None else {"query": found.query}
        if self._layout.kind == "json":
            return {**asked, **extraction.to_dict()}
        text = extraction.text
        if self._layout.kind == "list":
            text = listed(extraction.by_section(), self._layout.width)
        return self._below_name(found.origin, found.query, text)

    def _below_name(self, origin: "Origin", query: str | None, text: str) -> str:
        """Return a text, below the name of its document and its query where there are several."""
        head = f"Query: {' '.join(query.split())}\n" if query is not None else ""
        return f"{origin.name}:\n{head}{text}\n" if self._layout.named else text

    def _remarks(self, found: "Extracted") -> Iterator[str]:
        extraction, words = found.extraction, self._rules.budget.words
        if self._extractor.method == "hiporank" and not extraction.outline.has_sections:
            yield "one section"
        if not extraction.sentences:
            yield "empty"
        elif self._extractor.reads_queries and max(each.score for each in extraction.sentences) < 0:
            yield "unknown"
        if found.query is not None and not self._extractor.holds_word_of(found.query, extraction):
            yield "no word"
        if self._extractor.trained_language not in (None, extraction.outline.language):
            yield "other language"
        # Several sentences never exceed the budget.
        if words is not None and len(extraction.sentences) == 1 and count_words(extraction.text) > words:
            yield "longer"
        if self._extractor.language is None:
            yield extraction.outline.language


def _check_tokens(
    tokens: int | None, tokenizer: str | None, asked: Asked, method: str, selection: Mapping[str, Any]
) -> None:
    """Refuse options that say otherwise how much is kept, and in which form."""
    from pyramidions.extract.methods import ORACLE

    if tokens is None:
        if tokenizer is not None:
            raise UserError("--tokenizer is an option of --tokens, which is not given.")
        return
    excluded = {
        "--words": selection["words"],
        "--sentences": selection["sentences"],
        "--explain": asked.page,
        "--format list": asked.layout == "list",
        f"--method {ORACLE}": method == ORACLE,
    }
    if given := next((name for name, value in excluded.items() if value), None):
        raise UserError(f"--tokens and {given} exclude each other.")


def _fitted(corpus: Path, field: str | None, report: Report) -> "TfIdf":
    """Count document frequencies in a corpus."""
    from pyramidions.documents.source import Fields, list_files, read_files
    from pyramidions.extract import TfIdf

    if not corpus.exists():
        raise UserError(f"--idf must be a file or a folder, but {corpus} does not exist.")
    documents = read_files(list_files([corpus]).paths, Fields(field), report.fail)
    first = next(documents, None)
    if first is None:
        raise UserError(f"--idf must hold documents with text, but {corpus} holds none.")
    return TfIdf(document.text for document in chain([first], documents))
