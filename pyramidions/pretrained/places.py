"""What lies at a path, or under a name on the hub: every command asks here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.extract.concepts.files import ARRAYS, is_concept_model
from pyramidions.extract.concepts.files import CARD as CONCEPTS_CARD
from pyramidions.files.bounded import file_hash, read_regular
from pyramidions.files.hub import HubName, absent, commit_of, fetch, hub_name, when_damaged

#: "checkpoint": a file of fairseq-train; "export": a folder of ours; "transformers": one of another library;
#: "fairseq": fairseq's own BART, packed or not; "concepts": a model of concepts; "other": something else.
PlaceKind = Literal["checkpoint", "export", "transformers", "fairseq", "concepts", "other"]

CONFIG, CARD = "config.json", "README.md"
#: How transformers decodes, and how it reads a text.
GENERATION_CONFIG, TOKENIZER_CONFIG = "generation_config.json", "tokenizer_config.json"
#: The families of transformers' models that are read.
KNOWN_FAMILIES = ("bart", "led", "pegasus", "bigbird_pegasus", "pegasus_x", "mbart", "t5", "mt5", "longt5")
#: How transformers calls our models in an export of ours, whose config.json has the hashes of its files under "sha256".
MODEL_TYPE = "pyramidions"
#: Fields of the config.json of an export to a family: what wrote it, the hashes of its files, how long documents are
#: read, and what is known of the weights that it started from. transformers keeps them when it saves another model.
WRITTEN_BY, HASHES, LONG, SOURCE = (
    *("pyramidions_version", "pyramidions_sha256", "pyramidions_long", "pyramidions_source"),
)
#: Of a folder with checkpoints, the first of these is taken.
CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt")
#: Of fairseq's own BART; an archive ends in one of these.
MODEL, DICTIONARY, ARCHIVES = "model.pt", "dict.txt", (".tar.gz", ".tgz", ".tar")


_REFUSED: dict[PlaceKind, str] = {
    "fairseq": (
        "{0} holds model.pt, as fairseq's own BART does: `pyramidions import {0} -o model.pt` makes a checkpoint of "
        "such a model."
    ),
    "concepts": "{0} holds a model of concepts, which extracts: use `pyramidions extract --method {0}`.",
    "other": f"{{0}} must hold an exported model ({CONFIG}), {' or '.join(CHECKPOINTS)}, but holds none of them.",
}


class Place(NamedTuple):
    """A model on this machine or on the hub, of which only the config has been read."""

    given: str  # what the user says
    kind: PlaceKind  # of what lies there
    # Of the file or folder; of a model on the hub, of the folder in the cache, which may have its config alone.
    path: Path
    # What config.json says, for an export or a model of transformers; else empty.
    config: dict[str, Any] = {}  # noqa: RUF012  (never changed)
    hub: HubName | None = None  # its name on the hub; None for a path
    commit: str | None = None  # on the hub

    @property
    def name(self) -> str:
        """What errors call it: its name on the hub, or the path."""
        return str(self.hub or self.path)

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of files by their names, as config.json of an export has them; empty for anything else."""
        # transformers keeps the field when it saves another model, and adds one of its own.
        saved_by_others = "transformers_version" in self.config
        found = {} if saved_by_others else self.config.get("sha256" if self.kind == "export" else HASHES, {})
        if not isinstance(found, dict) or not all(Path(name).name == name for name in found):
            raise UserError(f"{self.path / CONFIG} is damaged: the hashes of files must be by name.")
        return found

    @property
    def family(self) -> str | None:
        """How transformers calls its family, as its config says; None for anything but a model of transformers."""
        found = self.config.get("model_type")
        return found if self.kind == "transformers" and isinstance(found, str) else None

    def files(self) -> list[Path]:
        """Return the files that it consists of; of a model on the hub, which its commit tells apart, none."""
        if self.hub is not None:
            return []
        if self.kind == "concepts":
            return [self.path / CONCEPTS_CARD, self.path / ARRAYS]
        if self.kind in ("export", "transformers"):
            return [file for file in sorted(self.path.iterdir()) if file.is_file()]
        return [self.path] if self.path.is_file() else []


def place_of(given: str | Path) -> Place:
    """Tell what lies at a path, or under a name on the hub where there is no such path; UserError if nothing does."""
    path = Path(given)
    if name := hub_name(given):
        return _on_hub(name, str(given))
    if not path.exists():
        raise UserError(f"The model {path} {absent(path)}.")
    if path.suffix in (".safetensors", ".bin") and path.is_file() and (path.parent / CONFIG).exists():
        # What is known of a file of weights stands beside it.
        path = path.parent
    if path.is_file():
        return Place(str(given), "fairseq" if path.name.endswith(ARCHIVES) else "checkpoint", path)
    if is_concept_model(path):
        return Place(str(given), "concepts", path)
    if (path / CONFIG).exists():
        return place_with_config(path, str(given))
    for file in CHECKPOINTS:
        if (path / file).exists():
            return Place(str(given), "checkpoint", path / file)
    return Place(str(given), "fairseq" if (path / MODEL).exists() else "other", path)


def place_of_network(given: str | Path) -> Place:
    """Do as `place_of`; a UserError says what to do with anything that is no network of ours or of transformers."""
    place = place_of(given)
    if place.kind in _REFUSED:
        raise UserError(_REFUSED[place.kind].format(place.path))
    return place


def _on_hub(name: HubName, given: str) -> Place:
    folder = fetch(name, [CONFIG])
    if not (folder / CONFIG).is_file():
        raise UserError(f"{name} on the hub must be a model of transformers or an export, but has no {CONFIG}.")
    return place_with_config(folder, given)._replace(hub=name, commit=commit_of(folder))


def place_with_config(folder: Path, given: str) -> Place:
    """Return the place of a folder with a config.json."""
    config = read_json(folder / CONFIG)
    kind: PlaceKind = "export" if "format" in config else "transformers"
    return Place(given, kind, folder, config)


def read_json(path: Path) -> dict[str, Any]:
    """Read the JSON object in a file of a model."""
    try:
        found = parse_json(read_regular(path))
    except FileNotFoundError:
        raise UserError(f"{path.parent} lacks {path.name}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}{when_damaged(path)}.") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} must hold a JSON object, but holds {shown(found)}.")
    return found


def check_hashes(folder: Path, hashes: Mapping[str, str]) -> None:
    """Refuse damaged files of an export, by the hashes that its config.json has of them."""
    for name in hashes:
        if not (folder / name).is_file():
            raise UserError(f"The exported model {folder} lacks {name}.")
    for name, expected in hashes.items():
        if file_hash(folder / name) != expected:
            raise UserError(f"{folder / name} is damaged: its SHA-256 is not the one in {CONFIG}.")


def unknown_family(name: str | Path, family: Any) -> UserError:
    """Return the error for a model of a family that is not read, as its config calls it."""
    return UserError(
        f"{name} must hold a model of one of the families {', '.join(KNOWN_FAMILIES)}, but holds {shown(family)}: "
        "import a model of these, or run this one in transformers."
    )
