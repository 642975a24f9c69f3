"""`pyramidions extract`."""

from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.job import Job
from pyramidions.cli.job_options import Asked, job_command, query_options, reading_options, writing_options
from pyramidions.cli.options import (
    PATH,
    READ_AS,
    exclude,
    language_option,
    naming_options,
    option_group,
    precision_option,
    require,
    user_dir_option,
)
from pyramidions.inference.precision import AUTO

if TYPE_CHECKING:
    from pyramidions.cli.worker import Report
    from pyramidions.extract import TfIdf

# What a note at the end says of documents.
_REMARKS = {
    "one section": "had no headings and counted as one section.",
    "empty": "shared no word with the reference: the summary is empty.",
    "by meetings": "was extracted by the method meetings (an English dialogue).",
    "by biomedical": "was extracted by the method biomedical (an English document).",
    "by hiporank": "was extracted by the method hiporank (not English, or not of 15 to 10,000 sentences).",
    "unknown": "held no concept of the model: HipoRank selected.",
    "no word": "held no word of the query: the summary is no answer to it.",
    "other language": "was in another language than the model of concepts was trained in.",
    **READ_AS,
    "longer": "had no sentence within the budget: the summary is the best one, which is longer.",
    "fits": "was kept whole, within --tokens.",
}


class Selecting(NamedTuple):
    """How sentences are selected, as the options say; ``method`` is a `Part` once it is parsed."""

    method: Any
    words: int | None
    sentences: int | None
    redundancy: str | None
    tokens: int | None
    tokenizer: str | None
    encoder: Path | None
    language: str | None
    device: str | None
    precision: str | None


@click.command(short_help="Extract the sentences that make a summary.")
@click.argument("files", nargs=-1, type=PATH)
@click.option(
    "--method",
    default="auto",
    show_default=True,
    help="auto, which uses meetings for English dialogues, biomedical for other English documents, and hiporank for "
    "the rest; biomedical or meetings, which come with the package; hiporank, textrank or lead, with options as in "
    "'hiporank(mu=0.5)'; oracle, which selects by a reference summary (--reference-field); or a trained extractor: "
    "a checkpoint, a folder of them, an exported model, or a model of concepts.",
)
@click.option(
    "--words",
    type=click.IntRange(1),
    help="Most words of a summary; in scripts without spaces, two letters count as one.  [default: 220, or a trained "
    "extractor's]",
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
@writing_options("with each document by section, its sentences shaded by score and the extracted ones marked")
@job_command
@option_group(name="selecting", kind=Selecting)
def extract(asked: Asked, selecting: Selecting, corpus: Path | None, reference_field: str | None) -> int:
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
    from pyramidions.cli.extracting import Extracting, Shortening
    from pyramidions.documents.source import Fields
    from pyramidions.extract.core import BLOCK
    from pyramidions.extract.methods import AUTO_METHOD, ORACLE, find_method, parse_method

    queries = asked.for_all()
    # What is kept of a document may be all of it.
    by_line = selecting.tokens is None
    fields = Fields(asked.field, asked.id_field, reference_field, asked.query_field, sections=True, by_line=by_line)
    reads: dict[str, str | Path | None] = {
        "--method": selecting.method,
        "--idf": corpus,
        "--vectors": selecting.encoder,
        "--query-file": asked.query_file,
        "--tokenizer": selecting.tokenizer,
    }
    with (
        naming_options(
            *("method", "words", "sentences", "redundancy", "tokenizer", "device", "precision", "query", "query_field")
        ),
        Job(asked, "extracting", fields, together=BLOCK, several=len(queries) > 1, reads=reads) as job,
    ):
        method = parse_method(selecting.method, "method", ORACLE, AUTO_METHOD)
        if (method.kind == ORACLE) != (reference_field is not None):
            raise UserError(f"--method {ORACLE} and --reference-field must be given together.")
        exclude({"--idf": corpus, "--vectors": selecting.encoder})
        _check_tokens(selecting, asked, method.kind == ORACLE)
        fitted = None if corpus is None else _fitted(corpus, asked.field, job.report)
        found = find_method(method.kind, "method", ORACLE, AUTO_METHOD)
        is_model = selecting.encoder is not None or found.network is not None
        precision = selecting.precision or (AUTO if is_model else None)
        how = selecting._replace(method=method, precision=precision)
        worker = Extracting if how.tokens is None else Shortening
        own_queries, explains = asked.query_field is not None, asked.page is not None
        make = partial(worker, job.layout, how, fitted, queries, own_queries, explains)
        return job.run(make, how.device if is_model else "cpu", _REMARKS)


def _check_tokens(selecting: Selecting, asked: Asked, is_oracle: bool) -> None:
    """Refuse options that say otherwise how much is kept, and in which form."""
    if selecting.tokens is None:
        require("--tokens", False, {"--tokenizer": selecting.tokenizer})
        return
    excluded = {
        "--words": selecting.words,
        "--sentences": selecting.sentences,
        "--explain": asked.page,
        "--format list": asked.layout == "list",
        "--method oracle": is_oracle,
    }
    exclude({"--tokens": True, **excluded})


def _fitted(corpus: Path, field: str | None, report: "Report") -> "TfIdf":
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
