"""`pyramidions export`."""

from pathlib import Path

import click


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--data", type=click.Path(path_type=Path), help="Data folder that the model was trained on, for the model card."
)
@click.option(
    "--scores", type=click.Path(path_type=Path), help="File of `pyramidions score --json`, for the model card."
)
@click.option("--license", "licence", help="Licence of the weights, for the model card.")
def export(checkpoint: Path, folder: Path, data: Path | None, scores: Path | None, licence: str | None) -> None:
    """Write a model, a summarizer or an extractor, as files that need neither fairseq nor pickle.

    CHECKPOINT is a checkpoint of fairseq-train or a folder of them, of which the best is taken. FOLDER gets the weights
    (model.safetensors), config.json, the tokenizer (sentencepiece.model or tokenizer.json) and a model card
    (README.md). It appears whole or not at all, and replaces only an older export.

    \b
    Example:
      pyramidions export checkpoints my-summarizer --data prepared --scores scores.json --license MIT
    """
    from pyramidions.data.folder import DataFolder
    from pyramidions.inference import export_model
    from pyramidions.inference.model_card import model_card
    from pyramidions.inference.model_files import refuse_foreign
    from pyramidions.inference.saved_model import load_either

    # Checked before the work.
    refuse_foreign(folder)
    model = load_either(checkpoint)
    card = model_card(model, folder.resolve().name, None if data is None else DataFolder(data), scores, licence)
    export_model(model, folder, card)
    click.echo(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
