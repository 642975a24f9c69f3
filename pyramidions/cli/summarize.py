"""`pyramidions summarize`."""

from functools import partial
from pathlib import Path

import click

from pyramidions.base.errors import UserError
from pyramidions.base.reading import BY_HEADINGS, LONG
from pyramidions.cli.job import Job
from pyramidions.cli.job_options import (
    Asked,
    Served,
    check_long,
    check_model,
    job_command,
    query_options,
    reading_options,
    served_options,
    writing_options,
)
from pyramidions.cli.options import (
    PATH,
    READ_AS,
    Grouped,
    language_option,
    naming_options,
    option,
    option_group,
    precision_option,
    require,
    user_dir_option,
)
from pyramidions.cli.summarizing import Computing, Reading, Summarizing, Writing
from pyramidions.inference.precision import AUTO

_GROUPS = {
    "field": "What is read",
    "writer": "A model on a server",
    "long": "Documents longer than the model reads",
    "layout": "What is written",
    "beam": "How a summary is searched for",
    "sampling": "How it is sampled instead",
    "batch_size": "How the model computes",
}


@click.command(cls=Grouped, groups=_GROUPS)
@click.argument("model", type=PATH, required=False, metavar="MODEL")
@click.argument("files", nargs=-1, type=PATH)
@reading_options
@query_options
@served_options
@click.option(
    "--long",
    "long",
    type=click.Choice(LONG),
    help="truncate: read the beginning; chunk: summarize piece by piece; merge: summarize the summaries of the pieces; "
    "sections: summarize each section, also of short documents; extract: read the sentences that --select selects; "
    "rewrite: rewrite each of them, also of short documents.  "
    "[default: extract for a pretrained model, else the model's, mostly truncate]",
)
@click.option(
    "--section-types",
    type=PATH,
    help="Table of section types, for --long sections.  [default: that of scientific papers]",
)
@click.option(
    "--select",
    metavar="METHOD",
    help="Select the sentences for --long extract and rewrite by auto (what suits the document, as in extract), "
    "hiporank, lead, textrank, biomedical, meetings, or what was trained: a model of concepts, or an extractor as a "
    "checkpoint, a folder of them, or an export.  [default: auto for --writer and pretrained models, else hiporank]",
)
@language_option
@writing_options("that shows what the model kept of each document, and what each word of its summary drew on")
@click.option(
    "--check",
    "checks",
    is_flag=True,
    help="Look for each sentence of a summary in its document, as `pyramidions check` does: the output says how many "
    "have support; with --json, also which sentences support them.",
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
@click.option(
    "--batch-size", type=click.IntRange(1), default=8, show_default=True, help="Documents or pieces per batch."
)
@click.option("--device", help="Device, such as cpu or cuda:1.  [default: a GPU if there is one]")
@precision_option(AUTO)
@click.option("--graphs", is_flag=True, help="Record the steps of the decoder as CUDA graphs. No GPU has run this yet.")
@click.option(
    "--kernels",
    type=click.Choice(["auto", "flex"]),
    help="How a GPU computes sliding windows; flex is torch's FlexAttention. No GPU has run that yet.  [default: the "
    "model's]",
)
@user_dir_option
@job_command
@option_group(name="computing", kind=Computing)
def summarize(
    asked: Asked,
    model: Path | None,
    served: Served,
    long: str | None,
    section_types: Path | None,
    select: str | None,
    language: str | None,
    checks: bool,
    computing: Computing,
) -> int:
    """Summarize documents.

    MODEL is a pretrained model of transformers (`pyramidions models` lists some), or what `pyramidions train`, `import`
    or `export` made, on this machine or as OWNER/NAME or OWNER/NAME@REVISION on the Hugging Face hub; or a checkpoint
    of fairseq-train, or a folder of them, of which the best is taken.

    FILES end in .txt, .md, .html, .pdf, .docx, .pptx, .epub, .xml, .nxml, .tex, .tar.gz, .vtt, .srt or .jsonl
    (or .jsonl.gz, .jsonl.xz), or are folders of such files; without any, or for -, standard input is one document.
    Unreadable files and lines of .jsonl files are reported and skipped; the exit status is then 1. A .jsonl file with
    an invalid first line is skipped as a whole. Summaries are written in the order of the documents, those of four
    batches at a time.

    \b
    Example:
      pyramidions summarize facebook/bart-large-cnn paper.pdf
      pyramidions summarize my-summarizer paper.pdf --explain page.html
      pyramidions summarize my-summarizer paper.pdf notes/ --long merge --check
      pyramidions summarize my-answerer meeting.txt --query "Why was the remote control made yellow?"
      pyramidions summarize checkpoints corpus.jsonl --json -o summaries.jsonl
      pyramidions summarize my-summarizer paper.pdf --sampling --top-p 0.9 --seed 7
      pyramidions summarize my-summarizer corpus.jsonl -o summaries.jsonl --engine ray --resume
      pyramidions summarize --writer http://localhost:11434/v1 --writer-model qwen3 paper.pdf --check
    """
    from pyramidions.documents.source import Fields

    together = 1
    if served.asked():
        # There is no model on this machine: what stands first is a document.
        asked = asked if model is None else asked._replace(files=(model, *asked.files))
        # --resume compares files by themselves.
        model = click.get_current_context().params["model"] = None
        long = long or "extract"
        if long == "rewrite":
            raise UserError("--long rewrite is for models of single sentences; --writer excludes it.")
    elif model is None:
        raise click.UsageError("Missing argument 'MODEL'.")
    else:
        # Before what needs torch.
        check_model(model, "summarize")
        from pyramidions.inference.stream import inputs_together
        from pyramidions.pretrained.bundle import reads_long

        long = long or reads_long(model)
        together = inputs_together(computing.batch_size)
    check_long(long, section_types, select, language, checks, asked.as_one)
    if asked.page is not None and long == "merge":
        raise UserError("--explain cannot trace a summary of summaries back to the document: --long must not be merge.")
    of_sampling = {option(name): value for name, value in computing.of_sampling().items()}
    require("--sampling", computing.sampling, of_sampling)
    for_all = asked.for_all()
    fields = Fields(asked.field, asked.id_field, query=asked.query_field, sections=long in BY_HEADINGS)
    reads = {"MODEL": model, "--section-types": section_types, "--select": select, "--query-file": asked.query_file}
    with (
        naming_options("writer", "select", "query", *Computing._fields),
        Job(asked, "summarizing", fields, together=together, several=len(for_all) > 1, reads=reads) as job,
    ):
        reading = Reading(job.layout, for_all, long, section_types, select, language, checks)
        if model is None:
            return job.run(partial(Writing, reading, served), "cpu", READ_AS)
        own_queries, explains = asked.query_field is not None, asked.page is not None
        make = partial(Summarizing, reading, model, computing, own_queries, explains)
        return job.run(make, computing.device, READ_AS)
