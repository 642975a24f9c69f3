"""`prepare --characters`: a stream of characters instead of documents."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from pyramidions.base.errors import UserError
from pyramidions.cli.options import naming_options, option, option_group, require

# What the user may say of documents and of characters alike.
_SHARED = {"input", "train", "valid", "test", "out", "source_field", "config", "workers", "overwrite"}


class CharacterOptions(NamedTuple):
    """Options of `prepare --characters`; None where nothing is given."""

    characters: str | None
    train_characters: int | None
    valid_characters: int | None
    test_characters: int | None
    pieces: int | None

    @property
    def given(self) -> dict[str, Any]:
        """The options that are given, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def check(self, ctx: click.Context) -> None:
        """Raise a UserError if options exclude each other or lack each other."""
        require("--characters", self.characters, {option(name): value for name, value in self.given.items()})
        if self.characters is None:
            return
        for name in ctx.params:
            is_ours = name in _SHARED or name in self._fields
            if not is_ours and ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE:
                raise UserError(f"{option(name)} is an option of preparing documents; --characters excludes it.")


_LIMIT = "Most characters of the {} split.  [default: {}]"
#: Gives a command these options together, as `characters`.
character_options = option_group(
    click.option(
        "--characters",
        metavar="LANGUAGE",
        help="Make a stream of characters for a language model: the letters of en, fi, he or vi, spaces and line ends, "
        "or bytes.",
    ),
    click.option("--train-characters", type=int, help=_LIMIT.format("train", "400 million")),
    click.option(
        "--valid-characters", type=int, help=_LIMIT.format("valid", "2 million; 5 million of text8 and enwik8")
    ),
    click.option(
        "--test-characters", type=int, help=_LIMIT.format("test", "all; where one text is cut, the size of valid")
    ),
    click.option(
        "--pieces", type=int, help="Train this many Unigram pieces on the train split, and mark where they end."
    ),
    name="characters",
    kind=CharacterOptions,
)


def prepare_characters(
    out: Path,
    name: str | None,
    files: Mapping[str, str],
    options: CharacterOptions,
    *,
    config: str | None,
    field: str | None,
    workers: int,
    overwrite: bool,
) -> str:
    """Make a folder of characters; return the report."""
    from pyramidions.base.notes import note
    from pyramidions.data.characters import WHOLE, CharacterSettings
    from pyramidions.data.characters import prepare_characters as make_folder
    from pyramidions.data.corpora.texts import find_text, open_streams
    from pyramidions.data.folder import SPLITS

    language = str(options.characters)
    with naming_options(*CharacterOptions._fields):
        settings = CharacterSettings(**options.given)
        text = None if name is None else find_text(name, language)
        if text is None:
            streams, about = open_streams(name, files, config, field), None
        else:
            given = {"--config": config, "--source-field": field} | {
                f"--{split}": file for split, file in files.items()
            }
            if excluded := next((each for each, value in given.items() if value is not None), None):
                raise UserError(f"{excluded} is not an option of {name}: its files and fields are known.")
            for line in text.facts(str(name)):
                note(line)
            settings = CharacterSettings(**{**text.settings, **options.given})
            streams, about = text.streams(language), {"name": name, "licence": text.licence}
        limits = [split for split in SPLITS if f"{split}_characters" in options.given]
        if unmade := next((split for split in limits if not {split, WHOLE} & streams.keys()), None):
            raise UserError(f"--{unmade}-characters must be left out: there is no {unmade} split.")
        made = make_folder(out, streams, settings, workers=workers, overwrite=overwrite, about=about)
    return _report(out) if made else f"{out} is up to date: same text, same settings."


def _report(out: Path) -> str:
    from pyramidions.data.character_folder import CharacterFolder

    folder = CharacterFolder(out)
    lines = [f"{out}: {folder.manifest['vocab_size']:,} symbols, four special ones among them"]
    for split, numbers in folder.manifest["splits"].items():
        characters, spaces, pieces = numbers["characters"], numbers["spaces"], numbers.get("pieces")
        lines.append(
            f"  {split}: {characters:,} characters, {spaces / characters:.1%} of them spaces"
            + (f"; {characters / pieces:.2f} to a piece" if pieces else "")
        )
    return "\n".join(lines)
