"""`pyramidions import`."""

import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.cli.naming import naming_options, option
from pyramidions.cli.outputs import PATH, check_output
from pyramidions.errors import UserError
from pyramidions.files.progress import counted, progress_bar

if TYPE_CHECKING:
    from pyramidions.data.readers import Document
    from pyramidions.pretrained.importing import Imported


@click.command(short_help="Turn a BART, LED or PEGASUS into a model to train.")
@click.argument("source", type=PATH)
@click.option("-o", "--out", metavar="CHECKPOINT", required=True, type=PATH, help="Checkpoint to write, ending in .pt.")
@click.option(
    "--max-source-positions",
    type=int,
    help="Tokens of the longest document; learned positions are copied to be as many.  [default: as pretrained]",
)
@click.option("--max-target-positions", type=int, help="Tokens of the longest summary.  [default: as pretrained]")
@click.option("--self-attention", help="Attention among source positions.  [default: as pretrained]")
@click.option("--self-attention-args", help="Its options, as JSON.")
@click.option("--pooling-lengths", help="Vectors that each encoder layer hands on, e.g. None,None,2048,512,None,None.")
@click.option("--pooling", help="How they are condensed.  [default: soft_topk]")
@click.option("--pooling-args", help="Its options, as JSON.")
@click.option("--scorer", help="What rates them.  [default: linear]")
@click.option("--scorer-args", help="Its options, as JSON.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, help="Seed of what is initialised.")
@click.option(
    "--compare",
    metavar="PAIRS",
    type=PATH,
    help="Documents with summaries, as for prepare: tell how probable the model finds these summaries before and after "
    "the changes.",
)
@click.option("--limit", type=click.IntRange(1), default=20, help="Pairs that --compare reads.")
def import_command(
    source: Path,
    out: Path,
    max_source_positions: int | None,
    max_target_positions: int | None,
    seed: int,
    compare: Path | None,
    limit: int,
    **changes: str | None,
) -> None:
    """Turn a pretrained BART, LED or PEGASUS into a checkpoint of ours.

    SOURCE is a folder as the Hugging Face hub keeps it: config.json, the weights (.safetensors, or .bin that holds
    tensors only), and the tokenizer. CHECKPOINT has weights, tokenizer and decoding settings; fairseq-train
    --finetune-from-model, fairseq-generate and summarize read it. Without options the model computes what it did.

    \b
    Examples:
      pyramidions import bart-base -o bart.pt
      pyramidions import bart-base -o long.pt --max-source-positions 16384 --self-attention blockwise \\
          --self-attention-args '{"block_size": 1024}' --pooling-lengths None,None,2048,512,None,None
    """
    from pyramidions.pretrained.checkpoint import write_checkpoint
    from pyramidions.pretrained.importing import import_model

    if out.suffix != ".pt":
        raise UserError(f"--out must end in .pt, but is {out}.")
    check_output("--out", out, "a checkpoint")
    asked = {name: value for name, value in changes.items() if value is not None}
    for name in ("pooling", "pooling_args", "scorer", "scorer_args"):
        if name in asked and "pooling_lengths" not in asked:
            raise UserError(f"{option(name)} is an option of --pooling-lengths, which is not given.")
    if "self_attention_args" in asked and "self_attention" not in asked:
        raise UserError("--self-attention-args is an option of --self-attention, which is not given.")
    if "self_attention" in asked:
        # Options of another kind mean nothing.
        asked.setdefault("self_attention_args", "{}")
    with naming_options("max_source_positions", "max_target_positions", *changes):
        found = import_model(
            source,
            max_source_positions=max_source_positions,
            max_target_positions=max_target_positions,
            changes=asked,
            seed=seed,
        )
    for line in _told(found):
        click.echo(line)
    if compare is not None:
        _compare(found, compare, limit)
    about = {"source": source.resolve().name, "family": found.family, "licence": found.licence}
    write_checkpoint(out, found.model, about)
    click.echo("To train it further, prepare documents with")
    click.echo(f"  --tokenizer {shlex.quote(str(out))}")
    click.echo("and give fairseq-train")
    click.echo(f"  {_flags(found, out)}")


def _told(found: "Imported") -> list[str]:
    model, transfer = found.model, found.transfer
    config = model.config
    parameters = sum(p.numel() for p in model.transformer.parameters())
    lines = [
        f"{found.family}, licence {found.licence or 'not said'}: {config.encoder_layers} + {config.decoder_layers} "
        f"layers, {config.embed_dim} wide, {model.tokenizer.vocab_size:,} pieces, {parameters / 1e6:.1f}M parameters",
        f"taken: {counted(len(transfer.taken), 'weight')}",
    ]
    for name, (old, new) in transfer.extended.items():
        lines.append(f"extended: {name.partition('.')[0]} positions from {old:,} to {new:,}, by copying")
    if transfer.new:
        lines.append(f"new: {', '.join(transfer.new)}")
    if found.spread:
        lines.append(f"scaled so that their scores spread: {', '.join(found.spread)}")
    if transfer.dropped:
        lines.append(f"left out: {', '.join(transfer.dropped)}")
    if found.unused:
        lines.append(f"unused: {counted(found.unused, 'embedding')} without a piece")
    return lines


def _compare(found: "Imported", pairs: Path, limit: int) -> None:
    from pyramidions.data.readers import Corpus
    from pyramidions.pretrained.likelihood import log_likelihood

    documents = list(islice(Corpus(str(pairs)), limit))
    for name, model in (("before", found.original), ("after", found.model)):
        lengths = (model.max_source_positions, model.max_target_positions)
        with progress_bar(f"comparing, {name}", len(documents), "pairs") as bar:
            value = log_likelihood(model.transformer, model.tokenizer, _told_by(bar, documents), *lengths)
        click.echo(f"log-likelihood of a token, mean over {counted(len(documents), 'pair')}, {name}: {value:.4f}")


def _told_by(bar: Any, documents: list["Document"]) -> Iterator["Document"]:
    for document in documents:
        yield document
        bar.update()


def _flags(found: "Imported", out: Path) -> str:
    """Return the flags of fairseq-train that start from the checkpoint."""
    from dataclasses import asdict

    from pyramidions.files.processes import as_typed
    from pyramidions.measure.recipe import model_flags
    from pyramidions.models import PyramidionConfig

    default = asdict(PyramidionConfig())
    lengths: dict[str, Any] = {
        "max_source_positions": found.model.max_source_positions,
        "max_target_positions": found.model.max_target_positions,
    }
    fields = {name: value for name, value in asdict(found.model.config).items() if value != default[name]}
    start = ["--finetune-from-model", str(out), "--arch", "vanilla"]
    return as_typed([*start, *model_flags({**fields, **lengths})])
