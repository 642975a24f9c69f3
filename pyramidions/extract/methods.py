"""The ways to extract by name."""

from pathlib import Path
from typing import NamedTuple

from pyramidions.base.arguments import checked
from pyramidions.base.errors import UserError
from pyramidions.base.notation import Part, parse_part
from pyramidions.extract.concepts import is_concept_model
from pyramidions.extract.core import RANKERS
from pyramidions.files.hub import hub_name
from pyramidions.text.language import ENGLISH
from pyramidions.text.outline import Outline

HIPORANK = "hiporank"
#: Chooses by the reference summary (`Oracle`): a bound of what extraction can reach.
ORACLE = "oracle"
#: Chooses a method for each document (`suited`).
AUTO_METHOD = "auto"
# Sentences of a document for `biomedical`: in fewer there is little to choose from, and more take long.
_LEAST, _MOST = 15, 10_000
#: Holds the trained extractors that come with the package, each in a folder of its name.
_SHIPPED = Path(__file__).with_name("shipped")


def known_methods(*others: str) -> tuple[str, ...]:
    """Return the names of all methods, and of the extractors that come with the package."""
    return (*RANKERS.names, *others, *sorted(folder.name for folder in _SHIPPED.iterdir()))


def parse_method(text: str, name: str, *others: str) -> Part:
    """Parse an option of a command: a method with its options, or the path of a trained extractor."""
    # Paths may hold brackets.
    kind = text.partition("(")[0].strip()
    return parse_part(name, text) if kind in RANKERS or kind in known_methods(*others) else Part(text)


class Method(NamedTuple):
    """What selects sentences."""

    name: str  # of a method, or of a model as it was given
    concepts: Path | None = None  # the folder, if it is a model of concepts
    network: Path | None = None  # the path, here or on the hub, if it is a trained network

    @property
    def model(self) -> Path | None:
        """The path of what was trained; None for a method that needs no training."""
        return self.concepts or self.network


def find_method(given: str | Path, name: str, *others: str) -> Method:
    """Return what selects sentences: a method by its name, or a trained extractor by its path.

    Methods, and extractors that come with the package, go before a file of that name. An error calls the argument
    ``name``.
    """
    path = Path(given)
    # A name that is asked for may be one of what is installed.
    if str(given) in RANKERS or str(given) in (known := known_methods(*others)):
        path = _SHIPPED / given
        if not path.is_dir():
            return Method(str(given))
    elif not path.exists() and not hub_name(given):
        wrong = f"{given} does not exist" if path.name != str(given) else f"is {str(given)!r}"
        raise UserError(f"`{name}` must be one of {', '.join(known)}, or a trained extractor, but {wrong}.")
    return Method(str(given), concepts=path) if is_concept_model(path) else Method(str(given), network=path)


@checked
def suited(outline: Outline) -> str:
    """Return the method for a document: a model where it gains on documents of its kind, else HipoRank.

    An English dialogue suits `meetings`. Any other English document suits `biomedical`, unless it is short or very
    long: the model gains on papers of other fields, news and encyclopedias, too, and about evens out on stories.
    """
    if outline.language != ENGLISH:
        return HIPORANK
    if outline.speakers:
        return "meetings"
    return "biomedical" if _LEAST <= len(outline.texts) <= _MOST else HIPORANK
