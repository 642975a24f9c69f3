"""`pyramidions summarize`."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.cli.outputs import check_summary_outputs, write_lines
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.errors import UserError
from pyramidions.text.reading import BY_HEADINGS, LONG

if TYPE_CHECKING:
    from pyramidions.inference.stream import Summarized


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--field", help="Field with the text, in .jsonl files.  [default: text, article or article_text]")
@click.option("--id-field", help="Field with the id, in .jsonl files.  [default: as in prepare, else the position]")
@click.option(
    "--long",
    "long",
    type=click.Choice(LONG),
    default="truncate",
    show_default=True,
    help="Truncate documents that are longer than the model reads; summarize them piece by piece; summarize these "
    "summaries; read the sentences that --select selects; or summarize each section of a document, short ones too.",
)
@click.option(
    "--section-types",
    type=click.Path(path_type=Path),
    help="Table of section types, for --long sections.  [default: that of scientific papers]",
)
@click.option(
    "--select",
    metavar="METHOD",
    help="Select the sentences for --long extract by hiporank, lead, textrank, or a trained extractor: a checkpoint, a "
    "folder of them, or an exported model.  [default: hiporank]",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object per document.")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write to this file; JSON if it ends in .jsonl.")
@click.option(
    "--explain",
    "page",
    metavar="PAGE.html",
    type=click.Path(path_type=Path),
    help="Write a page that shows what the model kept of each document, and what each word of its summary drew on.",
)
@click.option("--beam", type=click.IntRange(1), help="Beam size.  [default: the model's]")
@click.option(
    "--min-len",
    type=click.IntRange(0),
    help="Fewest tokens of a summary.  [default: the model's, less for a short text]",
)
@click.option(
    "--max-len", type=click.IntRange(1), help="Most tokens of a summary.  [default: the model's, less for a short text]"
)
@click.option("--length-penalty", type=float, help="Above 1 favours long summaries.  [default: the model's]")
@click.option(
    "--no-repeat-ngram",
    type=click.IntRange(0),
    help="Forbid repeated n-grams of this n; 0 allows all.  [default: the model's]",
)
@click.option("--batch-size", type=click.IntRange(1), default=8, show_default=True, help="Documents or pieces a batch.")
@click.option("--device", help="Device, such as cpu or cuda:1.  [default: a GPU if there is one]")
def summarize(
    model: Path,
    files: tuple[Path, ...],
    field: str | None,
    id_field: str | None,
    long: str,
    section_types: Path | None,
    select: str | None,
    as_json: bool,
    out: Path | None,
    page: Path | None,
    batch_size: int,
    device: str | None,
    **decoding: Any,
) -> int:
    """Summarize documents.

    MODEL is a checkpoint of fairseq-train, a folder of them (the best is taken), or a folder made by `pyramidions
    export`. FILES end in .txt, .md, .html, .pdf, .docx or .jsonl (or .jsonl.gz, .jsonl.xz), or are folders of such
    files; without any, standard input is one document. Unreadable files and lines of .jsonl files are reported and
    skipped; the exit status is then 1. A .jsonl file with an invalid first line is skipped as a whole. Summaries
    are written in the order of the documents, as soon as they are made.

    \b
    Example:
      pyramidions summarize my-summarizer paper.pdf --explain page.html
      pyramidions summarize my-summarizer paper.pdf notes/ --long merge
      pyramidions summarize checkpoints corpus.jsonl --json -o summaries.jsonl
    """
    from pyramidions.cli.naming import naming_options
    from pyramidions.inference import Summarizer
    from pyramidions.inference.documents import list_files, read_files
    from pyramidions.inference.search import decoding_settings
    from pyramidions.inference.stream import explain_documents, summarize_documents

    if section_types is not None and long != "sections":
        raise UserError("--section-types is an option of --long sections, which is not given.")
    if select is not None and long != "extract":
        raise UserError("--select is an option of --long extract, which is not given.")
    if page is not None and long == "merge":
        raise UserError("--explain cannot trace a summary of summaries back to the document: --long must not be merge.")
    as_json = as_json or (out is not None and out.suffix.lower() == ".jsonl")
    paths, skipped = list_files(files)
    check_summary_outputs(out, page, paths, as_json)
    with naming_options("device", "select", *decoding), closing(ReadingReport(paths, "summarizing")) as report:
        summarizer = Summarizer.from_pretrained(model, device)
        settings = decoding_settings(summarizer.model, **decoding)
        report.skip(skipped)
        documents = read_files(paths, field, id_field, headings=long in BY_HEADINGS, refuse=report.fail)
        # The names of documents are written if there are several.
        first = list(islice(documents, 2))
        if not first:
            return 1 if report.failed else 0
        documents = chain(first, documents)
        options: dict[str, Any] = {"long": long, "types": section_types, "select": select, "on_progress": report.add}
        if page is None:
            results = summarize_documents(documents, summarizer, settings, batch_size=batch_size, **options)
        else:
            results = explain_documents(
                documents, summarizer, settings, page, model=_name(model), refuse=report.fail, **options
            )
        lines = _lines(results, paths, len(first) > 1, as_json, long)
        write_lines(lines, out, report.bar_aside)
    return 1 if report.failed else 0


def _name(model: Path) -> str:
    """Return the name of a model for the page; that of a checkpoint needs its folder's name."""
    return "/".join(model.resolve().parts[-2:]) if model.is_file() else model.resolve().name


def _lines(
    results: Iterable["Summarized"], paths: list[Path], several: bool, as_json: bool, long: str
) -> Iterator[str]:
    from pyramidions.cli.summary_lines import SummaryIds, json_line, text_line

    if as_json:
        ids = SummaryIds(paths)
        return (json_line(result, ids, long) for result in results)
    named = several or len(paths) > 1
    return (text_line(result, named) for result in results)
