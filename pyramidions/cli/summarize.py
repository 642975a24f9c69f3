"""`pyramidions summarize`."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.cli.inputs import check_model
from pyramidions.cli.outputs import PATH, Grouped, check_summary_outputs, find_layout, format_options, write_lines
from pyramidions.cli.precision_option import precision_option
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.cli.sharding import LineBlocks, find_share, shard_option, write_shard
from pyramidions.errors import UserError
from pyramidions.inference.precision import AUTO
from pyramidions.text.reading import BY_HEADINGS, LONG

if TYPE_CHECKING:
    from pyramidions.inference.documents import InputText
    from pyramidions.inference.saved_model import SavedModel
    from pyramidions.inference.search import DecodingSettings
    from pyramidions.inference.stream import Summarized


# What 0.2.0 called it.
_RENAMED = {"no-repeat-ngram": "no-repeat-ngram-size"}


_GROUPS = {
    "field": "What is read",
    "long": "Documents longer than the model reads",
    "layout": "What is written",
    "beam": "How a summary is searched for",
    "sampling": "How it is sampled instead",
    "batch_size": "How the model computes",
}


@click.command(
    cls=Grouped, groups=_GROUPS, context_settings={"token_normalize_func": lambda name: _RENAMED.get(name, name)}
)
@click.argument("model", type=PATH)
@click.argument("files", nargs=-1, type=PATH)
@click.option("--field", help="Field with the text, in .jsonl files.  [default: text, article or article_text]")
@click.option("--id-field", help="Field with the id, in .jsonl files.  [default: as in prepare, else the position]")
@click.option(
    "--query",
    "queries",
    multiple=True,
    help="What the summary answers, for models trained with queries; given several times, each document is summarized "
    "once for each query.",
)
@click.option("--query-file", type=PATH, help="File of such queries, one a line.")
@click.option("--query-field", help="Field with the query of a document, in .jsonl files.")
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
    type=PATH,
    help="Table of section types, for --long sections.  [default: that of scientific papers]",
)
@click.option(
    "--select",
    metavar="METHOD",
    help="Select the sentences for --long extract by hiporank, lead, textrank, or a trained extractor: a checkpoint, a "
    "folder of them, or an exported model.  [default: hiporank]",
)
@format_options
@shard_option
@click.option(
    "--explain",
    "page",
    metavar="PAGE.html",
    type=PATH,
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
    "--no-repeat-ngram-size",
    "no_repeat_ngram",
    type=click.IntRange(0),
    help="Forbid repeated n-grams of this n; 0 allows all.  [default: the model's]",
)
@click.option(
    "--sampling",
    is_flag=True,
    help="Sample each token from the model's probabilities instead of searching for the most probable summary.",
)
@click.option(
    "--temperature", type=float, help="With --sampling: below 1 probable tokens become more so.  [default: 1]"
)
@click.option(
    "--top-k", type=click.IntRange(0), help="With --sampling: sample from this many tokens.  [default: 0, all]"
)
@click.option(
    "--top-p",
    type=float,
    help="With --sampling: sample from the most probable tokens that together have this probability.  [default: 1]",
)
@click.option("--seed", type=click.IntRange(0), help="Random seed of --sampling.  [default: 1]")
@click.option("--batch-size", type=click.IntRange(1), default=8, show_default=True, help="Documents or pieces a batch.")
@click.option("--device", help="Device, such as cpu or cuda:1.  [default: a GPU if there is one]")
@precision_option(AUTO)
def summarize(
    model: Path,
    files: tuple[Path, ...],
    field: str | None,
    id_field: str | None,
    queries: tuple[str, ...],
    query_file: Path | None,
    query_field: str | None,
    long: str,
    section_types: Path | None,
    select: str | None,
    layout: str | None,
    as_json: bool,
    out: Path | None,
    shard: str | None,
    page: Path | None,
    sampling: bool,
    batch_size: int,
    device: str | None,
    precision: str,
    **decoding: Any,
) -> int:
    """Summarize documents.

    MODEL is what `pyramidions train` or `pyramidions import` made, a checkpoint of fairseq-train, a folder of them (the
    best is taken), or a folder made by `pyramidions export`, on this machine or as OWNER/NAME or OWNER/NAME@REVISION on
    the Hugging Face hub. FILES end in .txt, .md, .html, .pdf, .docx or .jsonl (or .jsonl.gz, .jsonl.xz), or are folders
    of such files; without any, standard input is one document. Unreadable files and lines of .jsonl files are reported
    and skipped; the exit status is then 1. A .jsonl file with an invalid first line is skipped as a whole. Summaries
    are written in the order of the documents, as soon as they are made.

    \b
    Example:
      pyramidions summarize my-summarizer paper.pdf --explain page.html
      pyramidions summarize my-summarizer paper.pdf notes/ --long merge
      pyramidions summarize my-answerer meeting.txt --query "Why was the remote control made yellow?"
      pyramidions summarize checkpoints corpus.jsonl --json -o summaries.jsonl
      pyramidions summarize my-summarizer paper.pdf --sampling --top-p 0.9 --seed 7
      pyramidions summarize my-summarizer corpus.jsonl --shard 3/16 -o shards
    """
    # Before what needs torch.
    check_model(model, "summarize")
    from pyramidions.cli.naming import naming_options, option
    from pyramidions.cli.summary_lines import SummaryIds, json_line
    from pyramidions.inference.decoding_options import SamplingOptions
    from pyramidions.inference.documents import list_files, read_files
    from pyramidions.inference.queries import answerable, each_query
    from pyramidions.inference.reader import check_queries
    from pyramidions.inference.search import decoding_settings
    from pyramidions.inference.share import Turns
    from pyramidions.inference.stream import block_size, explain_documents, summarize_blocks, summarize_documents
    from pyramidions.inference.summarizer import Summarizer

    if section_types is not None and long != "sections":
        raise UserError("--section-types is an option of --long sections, which is not given.")
    if select is not None and long != "extract":
        raise UserError("--select is an option of --long extract, which is not given.")
    if page is not None and long == "merge":
        raise UserError("--explain cannot trace a summary of summaries back to the document: --long must not be merge.")
    of_sampling = {name: decoding.pop(name) for name in ("temperature", "top_k", "top_p", "seed")}
    of_sampling = {name: value for name, value in of_sampling.items() if value is not None}
    if of_sampling and not sampling:
        raise UserError(f"{option(next(iter(of_sampling)))} is an option of --sampling, which is not given.")
    asked = _queries(queries, query_file, query_field)
    layout = find_layout(layout, as_json, None if shard else out)
    paths, skipped = list_files(files)
    share = find_share(shard, out, page, paths)
    if share is None:
        check_summary_outputs(out, page, paths, layout == "json")
    with (
        naming_options("device", "precision", "select", "query", *decoding, *of_sampling),
        closing(ReadingReport(paths, "summarizing", 1 if share is None else share.of)) as report,
    ):
        summarizer = Summarizer.from_pretrained(model, device, precision)
        check_queries(summarizer.model.queries, bool(asked or query_field))
        for query in asked:
            summarizer.reader.asking(query)
        sampled = SamplingOptions(**of_sampling) if sampling else None
        settings = decoding_settings(summarizer.model, **decoding, sampling=sampled)
        report.skip(skipped)
        options: dict[str, Any] = {"long": long, "types": section_types, "select": select, "on_progress": report.add}

        def read(turns: Turns) -> Iterator["InputText"]:
            fields: dict[str, Any] = {"headings": long in BY_HEADINGS, "query_field": query_field}
            found = read_files(paths, field, id_field, **fields, refuse=report.fail, turns=turns)
            if asked:
                return each_query(found, asked)
            return answerable(found, summarizer.reader, report.fail) if query_field else found

        together: dict[str, Any] = {"batch_size": batch_size, "queries": max(len(asked), 1)}

        def line_blocks(turns: Turns) -> LineBlocks:
            ids = SummaryIds(paths, number_repeated=False)
            for number, results in summarize_blocks(read(turns), summarizer, settings, **together, **options):
                yield number, (json_line(result, ids, long) for result in results)

        if share is not None and out is not None:
            report.note(summarizer.precision.said)
            said = {"batch_size": batch_size, "long": long, "queries": _fingerprint(asked)}
            said |= {"device": summarizer.device.type, "precision": summarizer.precision.name}
            fields = {"field": field, "id_field": id_field, "query_field": query_field}
            about = {**_settings(summarizer.model, settings, section_types, select), **said, **fields}
            size = block_size(batch_size)
            return write_shard(share, out, paths, size, line_blocks, report, command="summarize", settings=about)
        documents = read(Turns())
        # The names of documents are written if there are several.
        first = list(islice(documents, 2))
        if not first:
            return 1 if report.failed else 0
        documents = _after(partial(report.note, summarizer.precision.said), chain(first, documents))
        if page is None:
            results = summarize_documents(documents, summarizer, settings, **together, **options)
        else:
            results = explain_documents(
                documents, summarizer, settings, page, model=_name(model), refuse=report.fail, **options
            )
        lines = _lines(results, paths, len(first) > 1, layout, long)
        write_lines(lines, out, report.bar_aside)
        report.finish()
    return 1 if report.failed else 0


def _after(note: Callable[[], None], documents: "Iterable[InputText]") -> "Iterator[InputText]":
    """Yield documents, the first one after a note: what is wrong before anything is read is said alone."""
    note()
    yield from documents


def _queries(queries: tuple[str, ...], query_file: Path | None, query_field: str | None) -> list[str]:
    """Return the queries for all documents; none if each has its own, or there are none."""
    from pyramidions.inference.queries import read_queries

    given = {"--query": queries, "--query-file": query_file, "--query-field": query_field}
    if len(several := [name for name, value in given.items() if value]) > 1:
        raise UserError(f"{several[0]} and {several[1]} exclude each other.")
    return list(queries) if query_file is None else read_queries(query_file)


def _fingerprint(queries: list[str]) -> str | None:
    """Return a SHA-256 of the queries for all documents, of which there may be many; None without any."""
    return hashlib.sha256(json.dumps(queries).encode()).hexdigest() if queries else None


def _settings(
    model: "SavedModel", decoding: "DecodingSettings", section_types: Path | None, select: str | None
) -> dict[str, Any]:
    """Return how the shards of a run write summaries."""
    from pyramidions.data.manifest import file_hash
    from pyramidions.inference.fingerprints import method_fingerprint, model_fingerprint

    plain = decoding._asdict()
    sampling = plain.pop("sampling")
    return {
        "model": model_fingerprint(model),
        **plain,
        "sampling": sampling is not None,
        **({} if sampling is None else asdict(sampling)),
        "section_types": None if section_types is None else file_hash(section_types),
        "select": None if select is None else method_fingerprint(select),
    }


def _name(model: Path) -> str:
    """Return the name of a model for the page; that of a checkpoint needs its folder's name."""
    return "/".join(model.resolve().parts[-2:]) if model.is_file() else model.resolve().name


def _lines(results: Iterable["Summarized"], paths: list[Path], several: bool, layout: str, long: str) -> Iterator[str]:
    from pyramidions.cli.summary_lines import SummaryIds, json_line, text_line

    if layout == "json":
        ids = SummaryIds(paths)
        return (json_line(result, ids, long) for result in results)
    named = several or len(paths) > 1
    return (text_line(result, named, layout) for result in results)
