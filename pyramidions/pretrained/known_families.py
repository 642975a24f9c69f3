"""The families of transformers' models that are read, by name; what reads them is imported for one of them alone."""

from pathlib import Path
from typing import Any

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError

KNOWN_FAMILIES = ("bart", "led", "pegasus", "bigbird_pegasus", "pegasus_x", "mbart", "t5", "mt5", "longt5")

#: Fields of the config.json of an export to a family: what wrote it, the hashes of its files, how long documents are
#: read, and what is known of the weights that it started from. transformers keeps them when it saves another model.
WRITTEN_BY, HASHES, LONG, SOURCE = (
    *("pyramidions_version", "pyramidions_sha256", "pyramidions_long", "pyramidions_source"),
)
#: how transformers calls our models in an export of ours
MODEL_TYPE = "pyramidions"


class OwnExportError(UserError):
    """A folder is an export of ours, of no family of transformers."""


def unknown_family(place: str | Path, family: Any) -> UserError:
    """Return the error for a model of a family that is not read.

    Args:
        place: of the model.
        family: as its config says.
    """
    if family == MODEL_TYPE:
        return OwnExportError(f"{place} must be a model of transformers, but is an export of ours.")
    return UserError(
        f"{place} must hold a model of one of the families {', '.join(KNOWN_FAMILIES)}, but holds {shown(family)}: "
        "import a model of these, or run this one in transformers."
    )
