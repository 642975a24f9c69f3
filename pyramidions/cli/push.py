"""`pyramidions push`."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click

from pyramidions.base.errors import UserError
from pyramidions.cli.outputs import PATH


@click.command(short_help="Publish an exported model on the Hugging Face hub.")
@click.argument("folder", type=PATH)
@click.argument("name")
@click.option("--private", is_flag=True, help="Only you see the model, which must be new.")
@click.option("--revision", metavar="BRANCH", help="Branch to write to, made if there is none.  [default: main]")
def push(folder: Path, name: str, private: bool, revision: str | None) -> None:
    """Publish an exported model on the Hugging Face hub.

    FOLDER is what `pyramidions export` wrote, in either format. NAME is OWNER/NAME on the hub. All files go up in one
    commit, which replaces an older export and nothing else. `hf auth login` or HF_TOKEN tells the hub who you are.

    \b
    Examples:
      pyramidions push my-summarizer me/my-summarizer --private
      pyramidions summarize me/my-summarizer paper.pdf
    """
    from pyramidions.conversion.model_card import renamed
    from pyramidions.files.hub import parsed, upload
    from pyramidions.inference.export_folder import CARD, EXPORTED, check_export, is_export

    found = parsed(name)
    if found is None or found.revision is not None:
        raise UserError(f"NAME must be OWNER/NAME, but is {name!r}.")
    check_export(folder)
    with TemporaryDirectory(prefix="pyramidions-") as published:
        for path in folder.resolve().iterdir():
            (Path(published) / path.name).symlink_to(path)
        if (card := folder / CARD).is_file():
            # The folder's own name means nothing there. What is no UTF-8 stays as it is.
            text = renamed(card.read_bytes().decode("utf-8", "surrogateescape"), name)
            (Path(published) / CARD).unlink()
            (Path(published) / CARD).write_bytes(text.encode("utf-8", "surrogateescape"))
        address = upload(Path(published), found._replace(revision=revision), EXPORTED, is_export, private=private)
    click.echo(address)
