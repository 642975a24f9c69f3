"""`pyramidions import`."""

import shlex
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.cli.options import PATH, naming_options, option, require, user_dir_option
from pyramidions.cli.outputs import check_output
from pyramidions.files.progress import counted, progress_bar

if TYPE_CHECKING:
    from pyramidions.data.readers import Document
    from pyramidions.pretrained.importing import Imported
    from pyramidions.pretrained.saved_model import SavedModel

_LIMIT = 20  # documents of --compare and --calibrate


@click.command(short_help="Turn a pretrained model of transformers into a checkpoint to train.")
@click.argument("source", type=PATH)
@click.option("-o", "--out", metavar="CHECKPOINT", required=True, type=PATH, help="Checkpoint to write, ending in .pt.")
@click.option(
    "--max-source-positions",
    type=int,
    help="Tokens of the longest document; learned positions are repeated to cover it.  [default: as pretrained]",
)
@click.option("--max-target-positions", type=int, help="Tokens of the longest summary.  [default: as pretrained]")
@click.option(
    "--self-attention",
    help="Attention among source positions, e.g. 'blockwise(block_size=1024)'.  [default: as pretrained]",
)
@click.option("--pooling-lengths", help="Vectors that each encoder layer hands on, e.g. None,None,2048,512,None,None.")
@click.option("--pooling", help="How they are condensed, e.g. 'soft_topk(base=40)'.  [default: soft_topk]")
@click.option("--scorer", help="What rates them.  [default: linear]")
@click.option(
    "--output",
    help="Output layer; 'pointer(start=12)' adds a pointer that at first copies almost nothing.  [default: tied]",
)
@user_dir_option
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=1, help="Seed of new weights.")
@click.option(
    "--compare",
    metavar="PAIRS",
    type=PATH,
    help="Documents with summaries, as for prepare: print how probable the model finds these summaries before and "
    "after the changes.",
)
@click.option(
    "--calibrate",
    metavar="DOCUMENTS",
    type=PATH,
    help="Documents as for summarize: scale new scorers so that their scores of these spread. Needed for pre-norm "
    "models such as PEGASUS, and with --scorer nonlinear.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    help="Pairs that --compare reads, and documents that --calibrate reads.  [default: 20]",
)
def import_command(
    source: Path,
    out: Path,
    max_source_positions: int | None,
    max_target_positions: int | None,
    seed: int,
    compare: Path | None,
    calibrate: Path | None,
    limit: int | None,
    **changes: str | None,
) -> None:
    """Turn a pretrained BART, mBART-50, LED, PRIMERA, PEGASUS, T5 or LongT5, or one like them, into a checkpoint.

    SOURCE is a model on the Hugging Face hub, OWNER/NAME or OWNER/NAME@REVISION (a branch, a tag or a commit), or a
    local copy of one, which takes precedence: config.json, the weights (.safetensors, or .bin that holds tensors
    only), and the tokenizer. It may also be an export of ours, or fairseq's own BART: a folder, or a .tar.gz, with
    model.pt, dict.txt, and GPT-2's encoder.json and vocab.bpe. CHECKPOINT has weights, tokenizer and decoding settings;
    fairseq-train --finetune-from-model, fairseq-generate and summarize read it. Without options, outputs stay the same.

    \b
    Examples:
      pyramidions import facebook/bart-base -o bart.pt
      pyramidions import ./bart-base -o long.pt --max-source-positions 16384 \\
          --self-attention 'blockwise(block_size=1024)' --pooling-lengths None,None,2048,512,None,None
    """
    from pyramidions.pretrained.calibration import calibrated_scorers
    from pyramidions.pretrained.importing import import_model, write_checkpoint

    if out.suffix != ".pt":
        raise UserError(f"--out must end in .pt, but is {out}.")
    check_output("--out", out, "a checkpoint", [source, source / "model.pt"])
    if limit is not None and compare is None and calibrate is None:
        raise UserError("--limit is an option of --compare and --calibrate, neither of which is given.")
    asked = _asked(changes)
    if calibrate is not None and asked.get("pooling_lengths") is None:
        raise UserError("--calibrate needs --pooling-lengths, which are not given.")
    pairs = None if compare is None else _pairs(compare, limit or _LIMIT)
    texts = None if calibrate is None else _texts(calibrate, limit or _LIMIT)
    with naming_options("max_source_positions", "max_target_positions", *changes):
        found = import_model(
            source,
            max_source_positions=max_source_positions,
            max_target_positions=max_target_positions,
            changes=asked,
            seed=seed,
        )
    if texts is not None and not calibrated_scorers(found.model):
        raise UserError("--calibrate needs poolings with a linear or nonlinear --scorer, but the model has none.")
    for line in _told(found):
        click.echo(line)
    if pairs is not None:
        _compare(found.original, "before", pairs)
        _compare(found.model, "after", pairs)
    if texts is not None:
        _calibrate(found.model, texts)
        if pairs is not None:
            _compare(found.model, "calibrated", pairs)
    write_checkpoint(out, found.model)
    click.echo("To train it further, with 64 documents an update:")
    click.echo(f"pyramidions prepare DOCUMENTS --tokenizer {shlex.quote(str(out))} --out prepared")
    click.echo(_command(found, out))


def _asked(changes: dict[str, str | None]) -> dict[str, Any]:
    """Return the architecture that the options ask for."""
    asked = {name: value for name, value in changes.items() if value is not None}
    of_pooling = {option(name): asked.get(name) for name in ("pooling", "scorer")}
    require("--pooling-lengths", asked.get("pooling_lengths"), of_pooling)
    return asked


def _told(found: "Imported") -> list[str]:
    """Return what became of the model, in lines."""
    model, transfer, origin, config = found.model, found.transfer, found.origin, found.model.config
    parameters = sum(p.numel() for p in model.transformer.parameters())
    fresh, scaled = (
        {name.removeprefix("encoder.").partition(".scorer.")[0] + ".scorer" for name in names if ".scorer." in name}
        for names in (transfer.new, found.spread)
    )
    repeats = config.decoding_no_repeat_ngram
    lines = [
        ("taken", counted(len(transfer.taken), "weight")),
        *(
            ("extended", f"{name.partition('.')[0]} positions from {old:,} to {new:,}, by copying")
            for name, (old, new) in transfer.extended.items()
        ),
        ("new", ", ".join(transfer.new)),
        ("scaled so that their scores spread", ", ".join(found.spread)),
        ("not scaled without documents, but by --calibrate", ", ".join(sorted(fresh - scaled))),
        ("left out", ", ".join(transfer.dropped)),
        (
            f"writes {config.decoding_min_length:,} to {config.decoding_max_length:,} tokens, "
            + (f"no {repeats}-gram twice" if repeats else "with repetitions"),
            f"beam {config.decoding_beam}, length penalty {config.decoding_length_penalty:g}",
        ),
        ("not applied", ", ".join(f"{name} {shown(value)}" for name, value in found.not_applied.items())),
    ]
    return [
        *([f"{origin.source} on the hub, commit {origin.revision}"] if origin.on_hub else []),
        f"{origin.family}, licence {origin.licence or 'not said'}: {config.encoder_layers} + {config.decoder_layers} "
        f"layers, {config.embed_dim} wide, {model.tokenizer.vocab_size:,} pieces, {parameters / 1e6:.1f}M parameters",
        *(f"{name}: {text}" for name, text in lines if text),
    ]


def _compare(model: "SavedModel", when: str, pairs: list["Document"]) -> None:
    from pyramidions.inference.document_losses import token_losses

    total, tokens = 0.0, 0
    with progress_bar(f"comparing, {when}", len(pairs), "pairs", items=pairs) as bar:
        for pair in bar:
            losses = token_losses(model, pair)
            total, tokens = total - float(losses.sum()), tokens + len(losses)
    click.echo(f"log-likelihood of a token, mean over {counted(len(pairs), 'pair')}, {when}: {total / tokens:.4f}")


def _pairs(compare: Path, limit: int) -> list["Document"]:
    from pyramidions.data.readers import Corpus

    found = list(islice(Corpus(str(compare)), limit))
    if not found:
        raise UserError(f"--compare must have pairs, but {compare} has none.")
    return found


def _texts(documents: Path, limit: int) -> list[str]:
    from pyramidions.documents.source import Fields, list_files, read_files

    documents_read = read_files(list_files([documents]).paths, Fields())
    found = [document.text for document in islice(documents_read, limit)]
    if not found:
        raise UserError(f"--calibrate must have documents, but {documents} has none.")
    return found


def _calibrate(model: "SavedModel", texts: list[str]) -> None:
    from pyramidions.pretrained.calibration import calibrate, calibrated_scorers

    done = calibrate(model, texts)
    same = [name for name in calibrated_scorers(model) if name not in {scorer.name for scorer in done}]
    if not done:
        raise UserError(f"--calibrate needs logits that vary, but those of {', '.join(same)} do not.")
    for name, mean, variance in done:
        click.echo(
            f"calibrated on {counted(len(texts), 'document')}: {name}, whose logits had mean {mean:.3g} and variance "
            f"{variance:.3g}"
        )
    if same:
        click.echo(f"not calibrated, as their logits do not vary: {', '.join(same)}")


# As the recipes in configs/pretrained have it.
_TRAINING = (
    "--task long_document_summarization --criterion pooled_cross_entropy --label-smoothing 0.1 --batch-size 1 "
    "--update-freq 64 --optimizer adam --weight-decay 0.01 --clip-norm 0.1 --lr 3e-5 --lr-scheduler linear_decay "
    "--warmup-updates 500 --max-update 20000"
)


def _command(found: "Imported", out: Path) -> str:
    """Return the command of fairseq-train that starts from the checkpoint."""
    from pyramidions.base.parts import loaded
    from pyramidions.files.processes import USER_DIR, as_typed
    from pyramidions.models import PyramidionConfig
    from pyramidions.runs.recipe import model_flags

    default = asdict(PyramidionConfig())
    fields = {name: value for name, value in asdict(found.model.config).items() if value != default[name]}
    fields |= {name: getattr(found.model, name) for name in ("max_source_positions", "max_target_positions")}
    prefix = found.model.source_prefix
    start = ["--finetune-from-model", str(out), *(["--source-prefix", prefix] if prefix else []), "--arch", "vanilla"]
    words = ["fairseq-train", "prepared", "--user-dir", *(loaded[-1:] or [USER_DIR]), *_TRAINING.split(), *start]
    return as_typed([*words, *model_flags(fields)])
