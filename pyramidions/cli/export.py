"""`pyramidions export`."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.options import PATH, given, require, user_dir_option

if TYPE_CHECKING:
    from pyramidions.files.hub import HubName

# As the hub spells them: ISO 639, and names of datasets, old ones without an owner.
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,8})?")
_DATASET = re.compile(r"([\w.-]+/)?[\w.-]+", re.ASCII)


@click.command(short_help="Write a model as plain files, and publish it.")
@click.argument("checkpoint", type=PATH)
@click.argument("folder", type=PATH, required=False)
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
@user_dir_option
@click.option("--push", "name", metavar="OWNER/NAME", help="Publish the export on the Hugging Face hub.")
@click.option("--private", is_flag=True, help="Only you see what --push publishes, which must be new.")
@click.option("--revision", metavar="BRANCH", help="Branch for --push, made if there is none.  [default: main]")
def export(
    checkpoint: Path, folder: Path | None, name: str | None, private: bool, revision: str | None, **about: Any
) -> None:
    """Write a model as files that need neither fairseq nor pickle, and publish it.

    The model is a summarizer, an extractor or a language model of characters. CHECKPOINT is a checkpoint of
    fairseq-train, or a folder of them (the best is taken). FOLDER gets the weights (model.safetensors),
    config.json, the tokenizer (sentencepiece.model or tokenizer.json), if the model has one, and a model card
    (README.md). It appears whole or not at all, and replaces only an older export.

    transformers reads FOLDER: `AutoModelForSeq2SeqLM.from_pretrained("FOLDER")`. A summarizer that started from BART,
    mBART-50, LED, PEGASUS, PEGASUS-X, T5 or LongT5 and has their architecture is one of these there. One with pooling,
    a pointer or other attention needs `import pyramidions.hf`; what is in the way is said.

    With --push, all files go up in one commit, which replaces an older export and nothing else. Without FOLDER,
    CHECKPOINT is an export, which goes up as it is. `hf auth login` or HF_TOKEN tells the hub who you are.

    \b
    Examples:
      pyramidions export checkpoints my-summarizer --data prepared --scores scores.json --license MIT --language en
      pyramidions export checkpoints my-summarizer --push me/my-summarizer --private
      pyramidions export my-summarizer --push me/my-summarizer
    """
    from pyramidions.files.hub import check_upload
    from pyramidions.pretrained.export_folder import is_export

    place = _place(name, private, revision)
    if folder is not None:
        _check_new(folder, about["languages"], about["datasets"])
        if place is not None:
            check_upload(place, is_export, private=private)
        _write(checkpoint, folder, **about)
    elif place is not None:
        _check_whole(checkpoint, about)
    else:
        raise click.UsageError("Missing argument 'FOLDER'.")
    if place is not None:
        click.echo(_publish(folder or checkpoint, place, private))


def _place(name: str | None, private: bool, revision: str | None) -> "HubName | None":
    """Return where to publish; None for nowhere."""
    from pyramidions.files.hub import parsed

    require("--push", name, {"--private": private, "--revision": revision})
    if name is None:
        return None
    found = parsed(name)
    if found is None or found.revision is not None:
        raise UserError(f"--push must be OWNER/NAME, but is {name!r}.")
    return found._replace(revision=revision)


def _check_new(folder: Path, languages: tuple[str, ...], datasets: tuple[str, ...]) -> None:
    """Refuse a folder that an export may not replace, and what no card can say."""
    from pyramidions.pretrained.export_folder import refuse_foreign

    refuse_foreign(folder)
    for name, texts, rule, form in (
        ("language", languages, _LANGUAGE, "en"),
        ("dataset", datasets, _DATASET, "OWNER/NAME"),
    ):
        for text in texts:
            if not rule.fullmatch(text):
                raise UserError(f"--{name} must be of the form {form}, but is {text!r}.")


def _check_whole(folder: Path, about: dict[str, Any]) -> None:
    """Refuse what is no whole export, and options that would make another one of it."""
    from pyramidions.pretrained.export_folder import check_export
    from pyramidions.pretrained.places import CONFIG

    if not (folder / CONFIG).is_file():
        raise UserError(f"FOLDER must be given unless CHECKPOINT is an export, but {folder} is none.")
    options = {"licence": "--license", "languages": "--language", "datasets": "--dataset"}
    if of_new := given({options.get(name, f"--{name}"): value for name, value in about.items()}):
        raise UserError(f"{of_new[0]} is for a new export, which needs FOLDER.")
    check_export(folder)


def _write(
    checkpoint: Path,
    folder: Path,
    data: Path | None,
    scores: Path | None,
    licence: str | None,
    languages: tuple[str, ...],
    datasets: tuple[str, ...],
) -> None:
    from pyramidions.data.character_folder import CharacterFolder
    from pyramidions.data.folder import DataFolder
    from pyramidions.pretrained.exporting import export_of
    from pyramidions.pretrained.model_card import model_card
    from pyramidions.pretrained.saved_model import SavedLanguageModel, load_any

    model = load_any(checkpoint)
    is_language_model = isinstance(model, SavedLanguageModel)
    if is_language_model and scores is not None:
        raise UserError(f"--scores must be of summaries, but {checkpoint} is a language model.")
    export = export_of(model)
    if export.reason:
        click.echo(f"transformers has no such model, and needs `import pyramidions.hf` to load it. {export.reason}")
    card = model_card(
        model,
        folder.resolve().name,
        None if data is None else CharacterFolder(data) if is_language_model else DataFolder(data),
        scores,
        licence,
        for_transformers=export.family is not None,
        languages=languages,
        datasets=datasets,
    )
    export.write(folder, card)
    click.echo(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def _publish(folder: Path, place: "HubName", private: bool) -> str:
    """Upload an export; return its address."""
    from pyramidions.files.hub import upload
    from pyramidions.pretrained.export_folder import EXPORTED, is_export
    from pyramidions.pretrained.model_card import renamed
    from pyramidions.pretrained.places import CARD

    with TemporaryDirectory(prefix="pyramidions-") as published:
        for path in folder.resolve().iterdir():
            (Path(published) / path.name).symlink_to(path)
        if (card := folder / CARD).is_file():
            # The folder's own name means nothing there. What is no UTF-8 stays as it is.
            text = renamed(card.read_bytes().decode("utf-8", "surrogateescape"), place.name)
            (Path(published) / CARD).unlink()
            (Path(published) / CARD).write_bytes(text.encode("utf-8", "surrogateescape"))
        return upload(Path(published), place, EXPORTED, is_export, private=private)
