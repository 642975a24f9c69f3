"""`pyramidions loss`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyramidions.cli.options import PATH, naming_options, user_dir_option

if TYPE_CHECKING:
    from pyramidions.inference.document_losses import Losses

#: What is measured: its key in the file, and what a table calls it.
_ROWS = {"own": "own document", "another": "another document", "cost": "another document costs"}


@click.command(short_help="Measure the loss on summaries, with their own document and with another.")
@click.argument("model", type=PATH)
@click.option("--data", type=PATH, required=True, help="Data folder with the documents and their summaries.")
@click.option("--split", type=click.Choice(["train", "valid", "test"]), default="valid", help="Split of --data.")
@click.option("--documents", type=click.IntRange(2), default=100, help="Number of documents to read.")
@click.option("--device", help="Device of the model, such as cpu or cuda:1.  [default: a GPU if there is one]")
@user_dir_option
@click.option("--json", "out", type=PATH, help="Write all numbers to this file, those of each document too.")
def loss(model: Path, data: Path, split: str, documents: int, device: str | None, out: Path | None) -> None:
    """Measure how well a summarizer predicts the summaries of documents, from their own text and from another's.

    MODEL is a checkpoint, a folder of them, or an exported model. The loss is in nats per token of a
    summary, averaged over documents. Each summary is also predicted from the document after its own: the difference is
    what the model gains from reading. A model that has not learned to read the document shows a difference around
    0, whatever its loss. Of a model that copies, it also prints the share of the summaries that is
    probably copied.

    \b
    Example:
      pyramidions loss checkpoints --data prepared --documents 200 --json losses.json
    """
    from pyramidions.cli.outputs import check_output, write_json
    from pyramidions.data.folder import DataFolder
    from pyramidions.files.progress import counted, progress_bar
    from pyramidions.inference.document_losses import FolderLosses
    from pyramidions.pretrained.saved_model import load_model

    check_output("--json", out, "an older file of losses", [model])
    with naming_options("device"):
        losses = FolderLosses(load_model(model), DataFolder(data), split, documents, device)
    with progress_bar("measuring", len(losses), "documents", items=losses) as bar:
        found: list[Losses] = list(bar)
    estimates = _estimates(found)
    click.echo("loss in nats a token, mean of documents [95% interval]")
    for key, name in _ROWS.items():
        numbers = estimates[key]
        click.echo(f"{name:24}{numbers['mean']:8.4f} [{numbers['low']:.4f}, {numbers['high']:.4f}]")
    if (copied := estimates.get("copied")) is not None:
        shares = f"{copied['mean']:8.1%} [{copied['low']:.1%}, {copied['high']:.1%}]"
        click.echo(f"{'copied, own document':24}{shares}")
    click.echo(f"{counted(len(found), 'document')} of {split} in {data} | bootstrap 95%")
    about = {"split": split, **estimates, "documents": [each._asdict() for each in found]}
    write_json(out, {"losses": "nats a token", **about})


def _estimates(found: "list[Losses]") -> dict[str, Any]:
    """Return mean and interval of both losses, of their difference, and of what a model copies."""
    import numpy as np

    from pyramidions.scoring.scores import pooled

    own, another = np.array([[each.own, each.another] for each in found]).T[:, None]
    values = dict(zip(_ROWS, (own, another, another - own), strict=True))
    if found[0].copied is not None:
        values["copied"] = np.array([[each.copied for each in found]])
    return {key: pooled(of)._asdict() for key, of in values.items()}
