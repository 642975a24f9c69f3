"""What options of several commands are made of: paths, groups, names in errors, and the options that many have."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import click

from pyramidions.base.arguments import flag_of
from pyramidions.base.errors import UserError
from pyramidions.base.parts import load_parts
from pyramidions.inference.precision import AUTO, PRECISIONS
from pyramidions.text.language import ENGLISH, LANGUAGES, Language

# The page of a model or a dataset.
_ON_HUB = re.compile(
    r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/(?:datasets/)?(?!docs/|spaces/|papers/|blog/|datasets/)([\w.-]{1,96}/[\w.-]{1,96})"
    r"(?:/tree/main)?/?$"
)


class _Path(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            # It would be the folder of the command.
            self.fail("must be a path, but is empty.", param, ctx)
        # As a path it would lose a slash.
        if (found := _ON_HUB.match(str(value))) is not None:
            self.fail(f"must be a path or a name, but is an address: write {found[1]}.", param, ctx)
        if "://" in str(value):
            self.fail(f"must be a path on this machine, but is {str(value)!r}: download it first.", param, ctx)
        return super().convert(value, param, ctx)


#: The type of an argument that is a file or a folder.
PATH = _Path(path_type=Path)
#: The same as text: it may also be the name of a dataset.
PLACE = _Path(path_type=str)


def option(argument: str) -> str:
    """Return the option of an argument."""
    return flag_of({"no_repeat_ngram": "no_repeat_ngram_size"}.get(argument, argument))


def given(options: Mapping[str, object]) -> list[str]:
    """Return the options that are given: those whose values are not None, not empty, and no unset flags."""
    return [name for name, value in options.items() if value not in (None, (), "") and value is not False]


def require(needed: str, is_given: object, options: Mapping[str, object]) -> None:
    """Refuse options of another one, which is not given."""
    if not is_given and (belonging := given(options)):
        raise UserError(f"{belonging[0]} is an option of {needed}, which is not given.")


def exclude(options: Mapping[str, object]) -> None:
    """Refuse more than one of these options."""
    if len(together := given(options)) > 1:
        raise UserError(f"{together[0]} and {together[1]} exclude each other.")


@contextmanager
def naming_options(*arguments: str) -> Iterator[None]:
    """Rename these arguments in errors: `min_len` becomes --min-len."""
    try:
        yield
    except UserError as error:
        names = "|".join(map(re.escape, arguments))
        raise UserError(re.sub(f"`({names})`", lambda match: option(match[1]), str(error))) from error


def option_group(*options: Callable[[Any], Any], name: str = "", kind: Any = None) -> Callable[[Any], Any]:
    """Return what gives a command some options of click, each by its own name.

    With a ``kind``, a named tuple or dataclass, the argument ``name`` holds those that are its fields; one that the
    command lacks has a default there.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        found = command
        if kind is not None:
            found = command if hasattr(command, "gathers") else _gathering(command)
            vars(found)["gathers"][name] = kind
        for each in reversed(options):
            found = each(found)
        return found

    return add


def _gathering(command: Callable[..., Any]) -> Callable[..., Any]:
    kinds: dict[str, Any] = {}

    @wraps(command)
    def gathered(**options: Any) -> Any:
        together = {
            name: kind(**{field: options.pop(field) for field in signature(kind).parameters if field in options})
            for name, kind in kinds.items()
        }
        return command(**together, **options)

    vars(gathered)["gathers"] = kinds
    return gathered


class Grouped(click.Command):
    """A command whose help groups its options; ``groups`` has the title of each group by its first option."""

    def __init__(self, *args: Any, groups: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below the titles of their groups."""
        found: dict[str, list[tuple[str, str]]] = {}
        title = "Options"
        for param in self.get_params(ctx):
            title = self._groups.get(param.name or "", title)
            # Newer versions of click list arguments as well, though they have no help.
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                found.setdefault(title, []).append(record)
        for title, records in found.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _load(_context: Any, _option: Any, folder: Path | None) -> None:
    if folder is not None:
        with naming_options("user_dir"):
            load_parts(folder)


#: Gives a command --user-dir; the command itself gets nothing, since the parts are there before it begins.
user_dir_option = click.option(
    "--user-dir",
    metavar="DIR",
    type=PATH,
    expose_value=False,
    callback=_load,
    help="Folder with parts of your own, that of --user-dir of fairseq-train.",
)


def _known(_context: Any, _option: Any, code: str | None) -> str | None:
    if code is None:
        return None
    with naming_options("language"):
        # Of "de-AT", the language counts.
        return Language(code.lower().partition("-")[0]).code


#: What a note at the end says of documents, by the language that was detected.
READ_AS = {code: f"was read as {code}; --language sets another language." for code in LANGUAGES if code != ENGLISH}
#: The language of documents, as `language`; None to detect it.
language_option = click.option(
    "--language",
    metavar="CODE",
    callback=_known,
    help="Language of the documents, an ISO 639-1 code such as de. It sets the rules for sentences and words.  "
    "[default: detected per document]",
)


def precision_option(default: str | None) -> Callable[[Any], Any]:
    """Add --precision, in which trained models compute; without a default, it is known whether it was given."""
    shown = "" if default else f"  [default: {AUTO}, of a trained model]"
    return click.option(
        "--precision",
        type=click.Choice((AUTO, *PRECISIONS)),
        default=default,
        show_default=default is not None,
        help="Precision of the model. auto: bfloat16 where the machine has instructions for it, but float32 for small "
        "models on a CPU; int8: 8-bit weights, on a CPU." + shown,
    )


#: Of a `Corpus`: its fields, its configuration, and what to do with odd documents.
corpus_options = option_group(
    click.option("--source-field", help="Field with the document.  [default: article or article_text]"),
    click.option("--target-field", help="Field with the summary.  [default: abstract or abstract_text]"),
    click.option("--id-field", help="Field with the id.  [default: id or article_id, else the position]"),
    click.option("--query-field", help="Field with the query that the summary answers.  [default: no queries]"),
    click.option("--config", help="Configuration of a Hugging Face dataset that has several."),
    language_option,
    click.option("--skip-empty", is_flag=True, help="Leave out documents with an empty text, summary or query."),
    click.option("--number-repeated-ids", is_flag=True, help="Make repeated ids unique: a, a#2, a#3."),
)
