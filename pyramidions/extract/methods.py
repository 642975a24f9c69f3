"""The ways to extract by name."""

from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.extract.core import RANKERS
from pyramidions.files.hub import hub_name

#: Chooses by the reference summary (`Oracle`): a bound of what extraction can reach.
ORACLE = "oracle"
#: Holds the trained extractors that come with the package, each in a folder of its name.
_SHIPPED = Path(__file__).with_name("shipped")


def known_methods(*others: str) -> tuple[str, ...]:
    """Return the names of all methods, and of the extractors that come with the package.

    Args:
        others: methods beside those of `RANKERS`.
    """
    return (*RANKERS.names, *others, *sorted(folder.name for folder in _SHIPPED.iterdir()))


def method_or_model(given: str | Path, name: str, *others: str) -> str | Path:
    """Return the name of a method that selects sentences, or the path of a trained extractor, here or on the hub.

    Args:
        given: either of them; a method, and an extractor that comes with the package, go before a file of that name.
        name: of the argument, for the error.
        others: methods beside those of `RANKERS`.

    Raises:
        UserError: there is no such method, and nothing at such a path.
    """
    known = known_methods(*others)
    if str(given) in known:
        shipped = _SHIPPED / given
        return shipped if shipped.is_dir() else str(given)
    if Path(given).exists() or hub_name(given):
        return Path(given)
    raise UserError(f"`{name}` must be one of {', '.join(known)}, or a trained extractor, but is {str(given)!r}.")
