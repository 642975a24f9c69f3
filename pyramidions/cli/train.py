"""`pyramidions train`."""

import math
from pathlib import Path
from typing import Any

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.options import PATH, PLACE, corpus_options, exclude, naming_options


@click.command(short_help="Train a model on documents, in one command.")
@click.argument("documents", type=PLACE)
@click.option("-o", "--out", "model", metavar="MODEL", required=True, type=PATH, help="Folder of the model to make.")
@click.option(
    "--kind",
    type=click.Choice(["auto", "summarizer", "extractor", "concepts"]),
    default="auto",
    help="summarizer: a network that writes; extractor: a network that selects sentences; concepts: trees that predict "
    "the words of a summary, and select the sentences that hold them, trained in minutes; auto: concepts below 5,000 "
    "documents or without a GPU, else summarizer.",
)
@click.option("--hours", type=click.FloatRange(0, 10_000, min_open=True), help="Most hours of training.")
@click.option("--gpus", type=click.IntRange(0, 1024), help="GPUs that train.  [default: all that torch finds]")
@click.option("--cpu", is_flag=True, help="Train on the CPU: --gpus 0.")
@corpus_options
@click.option("--vocab-size", type=click.IntRange(5, 2**24), help="Number of pieces.  [default: what suits the corpus]")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, help="Seed of the training.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, with the training command; write nothing.")
@click.option("--overwrite", is_flag=True, help="Begin anew, and replace MODEL.")
def train(
    documents: str, model: Path, gpus: int | None, cpu: bool, dry_run: bool, overwrite: bool, **options: Any
) -> None:
    """Train a model on DOCUMENTS: prepare, train, score and export in one command.

    DOCUMENTS is a folder with train, valid and test files, one .jsonl or .parquet file, or a Hugging Face dataset, as
    for `pyramidions prepare`. If a valid or test split is missing, documents are held out by a hash of their ids. The
    recipe depends on the number of documents and the machine. The model is scored on the test split, beside the first
    sentences and HipoRank. MODEL gets weights, settings, tokenizer, and a model card with the scores.

    MODEL.work keeps data, checkpoints, logs and scores. The same command, without --overwrite, continues an interrupted
    run.

    \b
    Examples:
      pyramidions train papers.jsonl -o my-model
      pyramidions train documents/ -o my-model --source-field text --target-field summary --hours 2
      pyramidions train papers.jsonl -o my-model --dry-run
    """
    from pyramidions.runs.arguments import Arguments, absolute
    from pyramidions.runs.training import show_plan
    from pyramidions.runs.training import train as train_model

    if options["hours"] is not None and math.isnan(options["hours"]):
        # Ranges let it pass.
        raise UserError("--hours must be a number, but is nan.")
    exclude({"--cpu": cpu, f"--gpus {gpus}": gpus or None})
    arguments = Arguments(absolute(documents), gpus=0 if cpu else gpus, **options)
    with naming_options("vocab_size"):
        if dry_run:
            show_plan(arguments, model, name=documents, overwrite=overwrite, say=click.echo)
        else:
            train_model(arguments, model, name=documents, overwrite=overwrite, say=click.echo)
