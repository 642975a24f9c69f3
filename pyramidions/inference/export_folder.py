"""The folder of an exported model: what may lie in it, and whether it is whole."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.extract.concepts.files import ARRAYS as CONCEPTS_ARRAYS
from pyramidions.extract.concepts.files import CARD as CONCEPTS_CARD
from pyramidions.files.bounded import file_hash, read_regular
from pyramidions.inference.model_kinds import KINDS, LANGUAGE_MODEL, SUMMARIZER, ModelKind
from pyramidions.pretrained.known_families import HASHES, MODEL_TYPE, WRITTEN_BY, unknown_family
from pyramidions.pretrained.places import CONFIG, Place, read_json
from pyramidions.text.tokenizer import JsonTokenizer, SentencePieceTokenizer

WEIGHTS, CARD = "model.safetensors", "README.md"
#: What an export for transformers may hold beside them. Ours of a summarizer hold the first two.
OF_TRANSFORMERS = ("generation_config.json", "tokenizer_config.json")
#: In an export of ours, where transformers finds our classes.
CODE = "modeling_pyramidions.py"
#: Of an export, the file of its tokenizer has one of these names.
TOKENIZERS = (SentencePieceTokenizer.file_name, JsonTokenizer.file_name)
#: All that an export may hold.
EXPORTED = (WEIGHTS, CONFIG, CARD, *TOKENIZERS, *OF_TRANSFORMERS, CODE)


def foreign(place: str | Path, family: Any, wanted: Collection[ModelKind] = (SUMMARIZER,)) -> UserError:
    """Return the error for a model of transformers: which family it is of, and what can be done with it.

    Args:
        place: of the model.
        family: as its config says.
        wanted: kinds of models that would do. Of an imported model, a summarizer is made.
    """
    if SUMMARIZER not in wanted:
        tasks = " or ".join(kind.task for kind in wanted)
        return UserError(
            f"{place} must hold a model of --task {tasks}, but holds one of transformers, of the family "
            f"{shown(family)}."
        )
    return unknown_family(place, family)


def read_config(path: Path) -> dict[str, Any]:
    """Read config.json of an export; errors are those of `check_config`."""
    config = read_json(path)
    return check_config(
        Place(str(path.parent), "export" if "format" in config else "transformers", path.parent, config)
    )


def check_config(place: Place, wanted: Collection[ModelKind] = (SUMMARIZER,)) -> dict[str, Any]:
    """Return what config.json of an export says; it has `model`, and maybe `kind` and `sha256`.

    Args:
        place: the export.
        wanted: kinds of models that would do, for the error about a model of transformers.

    Raises:
        UserError: it is damaged, of an older release, or of something else.
    """
    from pyramidions.models.file_format import refuse_older

    about, path, name = place.config, place.path / CONFIG, place.hub or place.path
    if "format" not in about and about.get("model_type", MODEL_TYPE) != MODEL_TYPE:
        raise foreign(str(name), about["model_type"], wanted)
    if "format" not in about:
        raise UserError(f"{path} must be as written by `pyramidions export`.")
    refuse_older(str(name), about["format"])
    config, hashes, kind = about.get("model"), about.get("sha256", {}), about.get("kind", SUMMARIZER.name)
    if not isinstance(kind, str) or kind not in KINDS:
        raise UserError(f"{path} is damaged: `kind` must be one of {', '.join(KINDS)}, but is {shown(kind)}.")
    if not isinstance(config, dict):
        raise UserError(f"{path} is damaged: `model` must hold the model's settings.")
    if kind == LANGUAGE_MODEL.name:
        whole, hashed = [{WEIGHTS}], f"the hash of {WEIGHTS}"
    else:
        whole, hashed = [{WEIGHTS, t} for t in TOKENIZERS], f"the hashes of {WEIGHTS} and {TOKENIZERS[0]}"
    if hashes != {} and not (isinstance(hashes, dict) and hashes.keys() in whole):
        raise UserError(f"{path} is damaged: `sha256` must hold {hashed}.")
    return about


def require(folder: Path, *names: str) -> None:
    """Refuse an export that lacks one of these files."""
    for name in names:
        if not (folder / name).is_file():
            raise UserError(f"The exported model {folder} lacks {name}.")


def refuse_foreign(folder: Path) -> None:
    """Refuse to replace anything but an export.

    Raises:
        UserError: there is a file, or a folder that holds anything else.
    """
    if file := next((parent for parent in folder.parents if parent.exists() and not parent.is_dir()), None):
        raise UserError(f"The folder of an export must lie in a folder, but {file} is a file.")
    rule = f"The folder of an export must be new, empty or an older export, but {folder}"
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{rule} is {'a file' if folder.is_file() else 'no folder'}.")
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    known = {CONCEPTS_CARD, CONCEPTS_ARRAYS, CARD} if CONCEPTS_CARD in found else set(EXPORTED)
    if others := found - known if {CONFIG, CONCEPTS_CARD} & found else found:
        raise UserError(f"{rule} holds {min(others)}.")
    if not found or CONCEPTS_CARD in found or _is_config(folder / CONFIG):
        return
    hashes = hashes_for_transformers(folder / CONFIG)
    if hashes is None:
        raise UserError(f"{rule} holds a {CONFIG} of something else.")
    if changed := _changed(folder, hashes):
        raise UserError(f"{rule} holds another {changed} than the one that was exported.")


def check_export(folder: Path) -> None:
    """Refuse a folder that is not a whole export, in our format or that of transformers.

    Raises:
        UserError: it lacks a file, or holds others, or one is damaged.
    """
    rule = f"{folder} must be a folder that `pyramidions export` wrote, but"
    if not folder.is_dir():
        raise UserError(f"{rule} {'is a file' if folder.exists() else 'does not exist'}.")
    found = {path.name for path in folder.iterdir()}
    if CONFIG not in found:
        raise UserError(f"{rule} lacks {CONFIG}.")
    if others := found - set(EXPORTED):
        raise UserError(f"{rule} holds {min(others)}.")
    hashes = hashes_for_transformers(folder / CONFIG)
    if hashes is None:
        about = read_config(folder / CONFIG)
        hashes = about.get("sha256", {})
        require(folder, WEIGHTS, *hashes)
        # transformers writes no hashes.
        if not hashes and about.get("kind") != LANGUAGE_MODEL.name and not found & set(TOKENIZERS):
            require(folder, TOKENIZERS[0])
    else:
        require(folder, *hashes, *OF_TRANSFORMERS[:2])
    check_hashes(folder, hashes)


def check_hashes(folder: Path, hashes: Mapping[str, str]) -> None:
    """Refuse damaged files of an export: its config.json has their hashes."""
    if changed := _changed(folder, hashes):
        raise UserError(f"{folder / changed} is damaged: its SHA-256 is not the one in {CONFIG}.")


def hashes_for_transformers(config: Path) -> dict[str, str] | None:
    """Return the hashes of files in the config.json of an export for transformers; None for any other."""
    try:
        about = parse_json(read_regular(config))
    except (OSError, ValueError):
        return None
    hashes = about.get(HASHES) if isinstance(about, dict) and WRITTEN_BY in about else None
    known = isinstance(hashes, dict) and hashes.keys() == {WEIGHTS, TOKENIZERS[1]}
    return hashes if known else None


def is_export(config: Path, hashes: Mapping[str, str]) -> bool:
    """Return whether a model is an export, by its config.json and what is known of the hashes of its files."""
    if _is_config(config):
        return True
    said = hashes_for_transformers(config)
    return said is not None and all(hashes.get(name, expected) == expected for name, expected in said.items())


def _changed(folder: Path, hashes: Mapping[str, str]) -> str | None:
    """Return the name of a file that is there, but with another hash."""
    files = ((name, folder / name) for name in hashes)
    return next((name for name, path in files if path.is_file() and file_hash(path) != hashes[name]), None)


def _is_config(path: Path) -> bool:
    """Return whether a config.json is that of an export in our format."""
    try:
        read_config(path)
    except (OSError, UserError):
        return False
    return True
