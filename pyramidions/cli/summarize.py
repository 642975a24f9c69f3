"""`pyramidions summarize`."""

import json
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.cli.outputs import check_output
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.errors import UserError

if TYPE_CHECKING:
    from pyramidions.inference import Summarizer
    from pyramidions.inference.documents import Document
    from pyramidions.inference.stream import Summarized


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--field", default="text", show_default=True, help="Of the objects in .jsonl files, with the text.")
@click.option("--id-field", help="Likewise, with the id.  [default: as in prepare, else the position]")
@click.option(
    "--long",
    "long",
    type=click.Choice(["truncate", "chunk"]),
    default="truncate",
    show_default=True,
    help="A document longer than the model reads loses its end, or is summarized piece by piece.",
)
@click.option("--json", "as_json", is_flag=True, help="Write a JSON object a document.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write to this file; JSON if it ends in .jsonl.")
@click.option(
    "--explain",
    "page",
    metavar="PAGE.html",
    type=click.Path(path_type=Path),
    help="Write a page that shows what was read of each document, and what each word of its summary drew on.",
)
@click.option("--beam", type=click.IntRange(1), help="Hypotheses of a document.  [default: the model's]")
@click.option(
    "--min-len",
    type=click.IntRange(0),
    help="Fewest tokens of a summary.  [default: the model's, less for a short text]",
)
@click.option(
    "--max-len", type=click.IntRange(1), help="Most tokens of a summary.  [default: the model's, less for a short text]"
)
@click.option("--length-penalty", type=float, help="Above 1 favours long summaries.  [default: the model's]")
@click.option("--no-repeat-ngram", type=click.IntRange(0), default=0, help="No n-gram of this n comes twice.")
@click.option("--batch-size", type=click.IntRange(1), default=8, show_default=True, help="Texts read at once.")
@click.option("--device", help="Such as cpu or cuda:1.  [default: a GPU if there is one]")
def summarize(
    model: Path,
    files: tuple[Path, ...],
    field: str,
    id_field: str | None,
    long: str,
    as_json: bool,
    out: Path | None,
    page: Path | None,
    batch_size: int,
    device: str | None,
    **decoding: Any,
) -> int:
    """Summarize documents.

    MODEL is a checkpoint of fairseq-train, a folder of them (the best is taken), or a folder made by `pyramidions
    export`. FILES end in .txt, .md, .html, .pdf, .docx or .jsonl, or are folders of such files; without any, standard
    input is one document. A file or a line of a .jsonl file that cannot be read is named, and the others are
    summarized: the exit status is then 1. Summaries come in the order of the documents, while others are still read.

    \b
    Example:
      pyramidions summarize my-summarizer paper.pdf --explain page.html
      pyramidions summarize my-summarizer paper.pdf notes/ --long chunk
      pyramidions summarize checkpoints corpus.jsonl --field article --json -o summaries.jsonl
    """
    from pyramidions.cli.naming import naming_options
    from pyramidions.data.atomic import atomic_file
    from pyramidions.inference import Summarizer
    from pyramidions.inference.documents import list_files
    from pyramidions.inference.stream import summarize_documents

    as_json = as_json or (out is not None and out.suffix.lower() == ".jsonl")
    paths, skipped = list_files(files)
    check_output("--out", out, "an older file of summaries" if as_json else "a text", paths)
    check_output("--explain", page, "a text", paths, [] if out is None else [out])
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"--explain must end in .html, but is {page}.")
    with naming_options("device", *decoding), closing(ReadingReport(paths)) as report:
        summarizer = Summarizer.from_pretrained(model, device)
        report.skip(skipped)
        first, documents = _look_ahead(_readable(paths, field, id_field, report))
        options = {"in_pieces": long == "chunk", "on_progress": report.add, **decoding}
        if page is None:
            results = summarize_documents(documents, summarizer, batch_size=batch_size, **options)
        else:
            about = "/".join(model.resolve().parts[-2:]) if model.is_file() else model.resolve().name
            results = _with_page(documents, summarizer, report, page, about, options)
        ids = _Ids(paths) if as_json else None
        named = max(first, len(paths)) > 1
        lines = (_line(result, named) if ids is None else _json_line(result, ids) for result in results)
        if out is None:
            for line in lines:
                with report.hidden():
                    click.echo(line)
        elif first:
            with atomic_file(out) as file:
                for line in lines:
                    file.write(f"{line}\n".encode())
    return 1 if report.failed else 0


def _readable(paths: list[Path], field: str, id_field: str | None, report: ReadingReport) -> Iterator["Document"]:
    from pyramidions.inference.documents import read_documents

    for path in paths:
        try:
            yield from read_documents(path, field, id_field, refuse=lambda error: report.fail(str(error)))
        except UserError as error:
            report.fail(str(error))
        except OSError as error:
            report.fail(f"{path}: {error.strerror}.")


def _look_ahead(documents: Iterator["Document"]) -> tuple[int, Iterator["Document"]]:
    """Return whether there are none, one or several documents (0, 1 or 2), and all documents."""
    first = list(islice(documents, 2))
    return len(first), chain(first, documents)


def _with_page(
    documents: Iterator["Document"],
    summarizer: "Summarizer",
    report: ReadingReport,
    target: Path,
    model: str,
    options: dict[str, Any],
) -> Iterator["Summarized"]:
    """Yield the documents with their summaries; after the last, the page is written."""
    from pyramidions.data.atomic import atomic_file
    from pyramidions.inference import ExplanationPage
    from pyramidions.inference.explanation_page import MOST, MOST_TOKENS
    from pyramidions.inference.stream import explain_documents

    if (first := next(documents, None)) is None:
        return
    page = ExplanationPage(model)
    # Opened before the work: a place that cannot be written is told at once.
    with atomic_file(target) as file:
        yield from explain_documents(chain([first], documents), summarizer, page, **options)
        file.write(page.html().encode())
    if page.left_out:
        limits = f"{MOST // 2**20} MiB, {MOST_TOKENS:,} tokens of a document"
        are = "document is" if page.left_out == 1 else "documents are"
        report.fail(f"{target} is full ({limits}): {page.left_out:,} {are} not on it, or not to the end.")


class _Ids:
    """The ids of documents, as `prepare` gives them: those of the records, else a position or a name."""

    def __init__(self, paths: list[Path]) -> None:
        from pyramidions.data.ids import UniqueIds

        self._by_position = len(paths) == 1 and paths[0].suffix.lower() == ".jsonl"
        self._given = UniqueIds(number_repeated=True)

    def of(self, document: "Document") -> str:
        """Return the id of the document that comes next."""
        position = str(document.position) if self._by_position else document.name
        return self._given.add(position if document.id is None else document.id, document.name)


def _json_line(result: "Summarized", ids: _Ids) -> str:
    """Return what is written about a document as a JSON object."""
    document, summaries = result
    about = {
        "id": ids.of(document),
        "name": document.name,
        "summary": " ".join(summary.text for summary in summaries),
        "pieces": len(summaries),
        "scores": [summary.score for summary in summaries],
        "document_tokens": sum(summary.document_tokens for summary in summaries),
        "read_tokens": sum(summary.read_tokens for summary in summaries),
    }
    return json.dumps(about, ensure_ascii=False)


def _line(result: "Summarized", named: bool) -> str:
    """Return what is written about a document as text: its summary and notes."""
    document, summaries = result
    read = sum(summary.read_tokens for summary in summaries)
    whole = sum(summary.document_tokens for summary in summaries)
    notes = []
    if len(summaries) > 1:
        notes.append(f"in {len(summaries)} pieces, summarized one by one")
    if (short := summaries[-1].shortened_to) is not None:
        notes.append(f"{'the last piece' if len(summaries) > 1 else 'the text'} is short: at most {short} tokens")
    if read < whole:
        notes.append(f"only the first {read:,} of {whole:,} tokens were read")
    note = f" ({'; '.join(notes)})" if notes else ""
    head = f"{document.name}{note}:\n" if named or note else ""
    return f"{head}{' '.join(summary.text for summary in summaries)}{chr(10) if named else ''}"
