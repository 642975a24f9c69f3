"""`pyramidions extract`."""

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.cli.naming import naming_options
from pyramidions.cli.outputs import PATH, check_summary_outputs, find_layout, format_options, listed, write_lines
from pyramidions.cli.precision_option import precision_option
from pyramidions.cli.reading_report import ReadingReport
from pyramidions.cli.sharding import LineBlocks, find_share, shard_option, write_shard
from pyramidions.errors import UserError
from pyramidions.inference.precision import AUTO

if TYPE_CHECKING:
    from pyramidions.cli.summary_lines import SummaryIds
    from pyramidions.extract import SelectionRules, TfIdf
    from pyramidions.extract.vectors import SentenceVectors
    from pyramidions.inference.documents import InputText
    from pyramidions.inference.extraction_stream import Extracted


@click.command(short_help="Extract the sentences that make a summary.")
@click.argument("files", nargs=-1, type=PATH)
@click.option(
    "--method",
    default="hiporank",
    help="hiporank, textrank, lead, or oracle, which chooses by a reference summary (--reference-field); or a trained "
    "extractor: a checkpoint, a folder of them, or an exported model.",
)
@click.option("--method-args", default="{}", help="Options of the method, as a JSON object, e.g. '{\"mu\": 0.5}'.")
@click.option(
    "--words", type=click.IntRange(1), help="Most words of a summary.  [default: 220, or a trained extractor's]"
)
@click.option("--sentences", type=click.IntRange(1), help="Most sentences of a summary.")
@click.option(
    "--redundancy",
    type=click.Choice(["none", "trigrams", "mmr"]),
    help="Pass over sentences that share a trigram with a selected one, or select by maximal marginal relevance.  "
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
@click.option("--device", help="Device of a model, such as cpu or cuda:1.  [default: a GPU if there is one]")
@precision_option(None)
@click.option("--field", help="Field with the text, in .jsonl files.  [default: text, article or article_text]")
@click.option("--id-field", help="Field with the id, in .jsonl files.  [default: as in prepare, else the position]")
@click.option("--reference-field", help="Field with the reference summary, for --method oracle.")
@format_options
@shard_option
@click.option(
    "--explain",
    "page",
    metavar="PAGE.html",
    type=PATH,
    help="Write a page with each document by section, its sentences shaded by score and the extracted ones marked.",
)
def extract(
    files: tuple[Path, ...],
    method: str,
    method_args: str,
    corpus: Path | None,
    encoder: Path | None,
    device: str | None,
    precision: str | None,
    field: str | None,
    id_field: str | None,
    reference_field: str | None,
    layout: str | None,
    as_json: bool,
    out: Path | None,
    shard: str | None,
    page: Path | None,
    **asked: Any,
) -> int:
    """Extract the sentences of each document that make a summary. No training is needed.

    FILES end in .txt, .md, .html, .pdf, .docx or .jsonl (or .jsonl.gz, .jsonl.xz), or are folders of such files;
    without any, standard input is one document. Sections are found by their headings. Sentences are written in
    reading order; with --json, each with its position, its section and its score. Unreadable files and lines of
    .jsonl files are reported and skipped; the exit status is then 1.

    \b
    Example:
      pyramidions extract paper.pdf --explain page.html
      pyramidions extract papers.jsonl --words 220 -o extracts.jsonl
      pyramidions score extracts.jsonl --data prepared
      pyramidions extract corpus.jsonl --shard 3/16 -o shards
    """
    from pyramidions.cli.summary_lines import SummaryIds
    from pyramidions.extract.methods import ORACLE, method_or_model
    from pyramidions.inference.documents import list_files, read_files
    from pyramidions.inference.extraction_stream import BLOCK, explain_extracts, extract_blocks, extract_documents
    from pyramidions.inference.extractor import Extractor
    from pyramidions.inference.share import Turns

    layout = find_layout(layout, as_json, None if shard else out)
    paths, skipped = list_files(files)
    share = find_share(shard, out, page, paths)
    if share is None:
        check_summary_outputs(out, page, paths, layout == "json")
    if (method == ORACLE) != (reference_field is not None):
        raise UserError(f"--method {ORACLE} and --reference-field must be given together.")
    with closing(ReadingReport(paths, "extracting", 1 if share is None else share.of)) as report:
        with naming_options("method", "device", "precision"):
            vectors = _vectors(corpus, field, encoder, device, precision, report)
            if isinstance(method_or_model(method, "method", ORACLE), Path):
                precision = precision or AUTO
            # Device and precision are the encoder's, if there is one.
            of_method: dict[str, Any] = {} if encoder is not None else {"device": device, "precision": precision}
            extractor = Extractor(method, _options(method_args), vectors=vectors, **of_method)
        report.skip(skipped)
        with naming_options("words", "sentences"):
            rules = extractor.rules(**asked)
        told: dict[str, Any] = {"on_progress": report.add, "refuse": report.fail, "note": report.note}

        def read(turns: Turns) -> Iterator["InputText"]:
            fields: dict[str, Any] = {"reference_field": reference_field, "headings": True, "by_line": True}
            return read_files(paths, field, id_field, **fields, refuse=report.fail, turns=turns)

        def line_blocks(turns: Turns) -> LineBlocks:
            ids = SummaryIds(paths, number_repeated=False)
            for number, results in extract_blocks(read(turns), extractor, rules, **told):
                yield number, (_json_line(result, ids) for result in results)

        if share is not None and out is not None:
            fields = {"field": field, "id_field": id_field, "reference_field": reference_field}
            settings = {**_settings(method, method_args, corpus, encoder, device), **fields, **_plain(rules)}
            if extractor.precision is not None:
                report.note(extractor.precision.said)
                settings["precision"] = extractor.precision.name
            return write_shard(share, out, paths, BLOCK, line_blocks, report, command="extract", settings=settings)
        results = extract_documents(read(Turns()), extractor, rules, **told)
        # Without any extract, older outputs stay.
        first = next(results, None)
        if first is None:
            return 1
        if extractor.precision is not None:
            report.note(extractor.precision.said)
        results = chain([first], results)
        if page is not None:
            results = explain_extracts(results, page, extractor, rules, refuse=report.fail)
        write_lines(_lines(results, paths, layout), out, report.bar_aside)
        report.finish()
    return 1 if report.failed else 0


def _options(text: str) -> dict[str, Any]:
    from pyramidions.strict_json import parse_options

    with naming_options("method_args"):
        return parse_options(text, "method_args")


def _vectors(
    corpus: Path | None,
    field: str | None,
    encoder: Path | None,
    device: str | None,
    precision: str | None,
    report: ReadingReport,
) -> "SentenceVectors | None":
    if corpus is not None and encoder is not None:
        raise UserError("--idf and --vectors exclude each other.")
    if corpus is not None:
        return _fitted(corpus, field, report)
    if encoder is not None:
        from pyramidions.inference.sentence_vectors import EncoderVectors

        return EncoderVectors.from_pretrained(encoder, device, precision or AUTO)
    return None


def _fitted(corpus: Path, field: str | None, report: ReadingReport) -> "TfIdf":
    """Count document frequencies in a corpus."""
    from pyramidions.extract import TfIdf
    from pyramidions.inference.documents import list_files, read_files

    if not corpus.exists():
        raise UserError(f"--idf must be a file or a folder, but {corpus} does not exist.")
    documents = read_files(list_files([corpus]).paths, field, refuse=report.fail)
    first = next(documents, None)
    if first is None:
        raise UserError(f"--idf must hold documents with text, but {corpus} holds none.")
    return TfIdf(document.text for document in chain([first], documents))


def _settings(
    method: str, method_args: str, corpus: Path | None, encoder: Path | None, device: str | None
) -> dict[str, Any]:
    """Return how the shards of a run rate sentences."""
    from pyramidions.inference.documents import list_files
    from pyramidions.inference.fingerprints import input_fingerprint, method_fingerprint, model_fingerprint

    rated_by = method_fingerprint(method)
    settings = {
        "method": rated_by,
        "method_args": _options(method_args),
        "idf": None if corpus is None else input_fingerprint(list_files([corpus]).paths),
        "vectors": None,
        "device": None,
    }
    if encoder is not None or rated_by != method:
        from pyramidions.device import found_device
        from pyramidions.inference.saved_model import load_model

        settings["vectors"] = None if encoder is None else model_fingerprint(load_model(encoder))
        settings["device"] = found_device(device).type
    return settings


def _plain(rules: "SelectionRules") -> dict[str, Any]:
    """Return rules of selection as values that JSON holds."""
    plain = rules._asdict()
    return {**plain.pop("budget")._asdict(), **plain}


def _lines(results: Iterable["Extracted"], paths: list[Path], layout: str) -> Iterator[str]:
    from pyramidions.cli.summary_lines import SummaryIds
    from pyramidions.inference.file_formats import holds_records

    ids = SummaryIds(paths)
    # The names of documents are written if there are several.
    several = len(paths) > 1 or holds_records(paths[0])
    for result in results:
        if layout == "json":
            yield _json_line(result, ids)
        else:
            name, text = result.document.origin.name, result.extraction.text
            if layout == "list":
                text = listed(result.extraction.by_section())
            yield f"{name}:\n{text}\n" if several else text


def _json_line(result: "Extracted", ids: "SummaryIds") -> str:
    document, found = result
    about = {
        "id": ids.of(document.origin),
        "name": document.origin.name,
        **found.to_dict(),
    }
    return json.dumps(about, ensure_ascii=False)
