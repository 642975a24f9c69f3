"""`pyramidions export`."""

import re
from pathlib import Path

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.outputs import PATH

# As the hub spells them: ISO 639, and names of datasets, old ones without an owner.
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,8})?")
_DATASET = re.compile(r"([\w.-]+/)?[\w.-]+", re.ASCII)


@click.command()
@click.argument("checkpoint", type=PATH)
@click.argument("folder", type=PATH)
@click.option("--data", type=PATH, help="Data folder that the model was trained on, for the model card.")
@click.option("--scores", type=PATH, help="File of `pyramidions score --json`, for the model card.")
@click.option("--license", "licence", help="Licence of the weights, for the model card.")
@click.option(
    "--language",
    "languages",
    multiple=True,
    help="Language of the documents, e.g. en, for the model card; several may be given.",
)
@click.option(
    "--dataset",
    "datasets",
    multiple=True,
    metavar="OWNER/NAME",
    help="Dataset on the Hugging Face hub that the model was trained on, for the model card; several may be given. "
    "With one, --scores count as scores on it.  [default: the known corpus of --data]",
)
@click.option(
    "--to",
    type=click.Choice(["pyramidions", "hf"]),
    default="pyramidions",
    show_default=True,
    help="pyramidions: our format, for every model; hf: that of transformers, for models with the architecture of "
    "BART, mBART-50, LED, PEGASUS, PEGASUS-X, T5 or LongT5.",
)
def export(
    checkpoint: Path,
    folder: Path,
    data: Path | None,
    scores: Path | None,
    licence: str | None,
    languages: tuple[str, ...],
    datasets: tuple[str, ...],
    to: str,
) -> None:
    """Write a model as files that need neither fairseq nor pickle.

    The model is a summarizer, an extractor or a language model of characters. CHECKPOINT is a checkpoint of
    fairseq-train, or a folder of them (the best is taken). FOLDER gets the weights (model.safetensors),
    config.json, the tokenizer (sentencepiece.model or tokenizer.json), if the model has one, and a model card
    (README.md). It appears whole or not at all, and replaces only an older export. After `import pyramidions.hf`,
    transformers reads an exported summarizer; three small files in FOLDER are for that.

    With --to hf, transformers reads FOLDER with its own classes:
    `AutoModelForSeq2SeqLM.from_pretrained("FOLDER")`. Models with pooling, a pointer or other attention than BART, LED,
    PEGASUS, PEGASUS-X, T5 and LongT5 have no class there.

    \b
    Examples:
      pyramidions export checkpoints my-summarizer --data prepared --scores scores.json --license MIT --language en
      pyramidions export checkpoints my-led --to hf
    """
    from pyramidions.conversion.exporting import hugging_face_files
    from pyramidions.conversion.model_card import model_card
    from pyramidions.data.character_folder import CharacterFolder
    from pyramidions.data.folder import DataFolder
    from pyramidions.inference.export_folder import CARD, refuse_foreign
    from pyramidions.inference.saved_model import SavedLanguageModel, export_model, load_any, write_export

    # Checked before the work.
    refuse_foreign(folder)
    for name, given, rule, form in (
        ("language", languages, _LANGUAGE, "en"),
        ("dataset", datasets, _DATASET, "OWNER/NAME"),
    ):
        for text in given:
            if not rule.fullmatch(text):
                raise UserError(f"--{name} must be of the form {form}, but is {text!r}.")
    model = load_any(checkpoint)
    is_language_model, for_transformers = isinstance(model, SavedLanguageModel), to == "hf"
    if is_language_model and scores is not None:
        raise UserError(f"--scores must be of summaries, but {checkpoint} is a language model.")
    card = model_card(
        model,
        folder.resolve().name,
        None if data is None else CharacterFolder(data) if is_language_model else DataFolder(data),
        scores,
        licence,
        for_transformers=for_transformers,
        languages=languages,
        datasets=datasets,
    )
    if for_transformers:
        write_export(folder, {**hugging_face_files(model), CARD: card.encode()})
    else:
        export_model(model, folder, card)
    click.echo(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
