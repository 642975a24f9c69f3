"""The folder of an exported model: what may lie in it, whether it is whole, and what may be replaced."""

from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import as_json_bytes
from pyramidions.extract.concepts.files import ARRAYS as CONCEPTS_ARRAYS
from pyramidions.extract.concepts.files import CARD as CONCEPTS_CARD
from pyramidions.files.atomic import atomic_folder, sync
from pyramidions.files.bounded import file_hash
from pyramidions.pretrained.model_kinds import LANGUAGE_MODEL
from pyramidions.pretrained.places import (
    CARD,
    CONFIG,
    GENERATION_CONFIG,
    HASHES,
    TOKENIZER_CONFIG,
    WRITTEN_BY,
    Place,
    check_hashes,
    place_with_config,
)
from pyramidions.text.tokenizer import JsonTokenizer, SentencePieceTokenizer

# Weights alone need torch.
if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = "model.safetensors"
#: What an export for transformers may hold beside them. Ours of a summarizer hold the first two.
OF_TRANSFORMERS = (GENERATION_CONFIG, TOKENIZER_CONFIG)
#: In an export of ours, where transformers finds our classes.
CODE = "modeling_pyramidions.py"
#: Of an export, the file of its tokenizer has one of these names.
TOKENIZERS = (SentencePieceTokenizer.file_name, JsonTokenizer.file_name)
#: All that an export may hold.
EXPORTED = (WEIGHTS, CONFIG, CARD, *TOKENIZERS, *OF_TRANSFORMERS, CODE)


def write_export(
    folder: str | Path, weights: "Mapping[str, Tensor]", files: Mapping[str, bytes], config: Mapping[str, Any]
) -> None:
    """Write an export; the folder appears whole or not at all, and replaces an older export alone.

    ``files`` are all others, the card among them, but for config.json, to whose fields the hashes are added.
    """
    from safetensors.torch import save

    # A link stays one: the folder that it names is replaced.
    folder = Path(folder).resolve()
    refuse_foreign(folder)
    try:
        with atomic_folder(folder) as partial:
            # Some versions of transformers refuse a file that does not say what wrote its tensors. The library's own
            # writing would leave a file that only its owner may read, and hide why a disk refuses it.
            _write(partial, {**files, WEIGHTS: save(dict(weights), metadata={"format": "pt"})})
            hashes = {name: file_hash(partial / name) for name in (WEIGHTS, *TOKENIZERS) if (partial / name).exists()}
            about = {**config, "sha256" if "format" in config else HASHES: hashes}
            _write(partial, {CONFIG: as_json_bytes(about)})
    except OSError as error:
        # Nobody asked for the hidden folder beside it.
        error.filename, error.filename2 = str(folder), None
        raise


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        with (folder / name).open("wb") as file:
            file.write(content)
            sync(file)


def refuse_foreign(folder: Path) -> None:
    """Refuse to replace anything but an export: a file, or a folder that holds anything else."""
    if file := next((parent for parent in folder.parents if parent.exists() and not parent.is_dir()), None):
        raise UserError(f"The folder of an export must lie in a folder, but {file} is a file.")
    rule = f"The folder of an export must be new, empty or an older export, but {folder}"
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{rule} is {'a file' if folder.is_file() else 'no folder'}.")
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if CONCEPTS_CARD in held:
        _refuse_others(rule, held, {CONCEPTS_CARD, CONCEPTS_ARRAYS, CARD})
    elif held:
        _refuse_others(rule, held, EXPORTED if CONFIG in held else ())
        _refuse_changed(rule, folder)


def _refuse_others(rule: str, held: Set[str], known: Iterable[str]) -> None:
    if others := held - {*known}:
        raise UserError(f"{rule} holds {min(others)}.")


def _refuse_changed(rule: str, folder: Path) -> None:
    """Refuse a folder that is no export, or whose files transformers has written since."""
    place = exported(folder)
    if place is None:
        raise UserError(f"{rule} holds a {CONFIG} of something else.")
    for name, expected in place.hashes.items() if place.kind == "transformers" else ():
        if (folder / name).is_file() and file_hash(folder / name) != expected:
            raise UserError(f"{rule} holds another {name} than the one that was exported.")


def check_export(folder: Path) -> None:
    """Refuse a folder with a config.json that is not a whole export: it lacks a file, holds others, or is damaged."""
    from pyramidions.pretrained.bundle import described_model

    rule = f"{folder} must be a folder that `pyramidions export` wrote, but"
    held = {path.name for path in folder.iterdir()}
    _refuse_others(rule, held, EXPORTED)
    place = place_with_config(folder, str(folder))
    needed = {WEIGHTS, *place.hashes}
    if place.kind == "export":
        # transformers writes no hashes.
        has_texts = described_model(place)[0] is not LANGUAGE_MODEL
        needed |= {TOKENIZERS[0]} if has_texts and not held & set(TOKENIZERS) else set()
    elif is_of_export(place):
        needed |= set(OF_TRANSFORMERS)
    else:
        raise UserError(f"{rule} holds a {CONFIG} of something else.")
    if lacking := needed - held:
        raise UserError(f"The exported model {folder} lacks {min(lacking)}.")
    check_hashes(folder, place.hashes)


def exported(folder: Path) -> Place | None:
    """Return the place of an export, by its config.json; None for anything else."""
    try:
        place = place_with_config(folder, str(folder))
        return place if is_of_export(place) else None
    except UserError:
        return None


def is_of_export(place: Place) -> bool:
    """Return whether a config.json is that of an export, or refuse damaged hashes."""
    from pyramidions.models.formats import FORMAT

    if place.kind == "export":
        return place.config["format"] in range(1, FORMAT + 1) and isinstance(place.config.get("model"), dict)
    return WRITTEN_BY in place.config and WEIGHTS in place.hashes


def is_export(config: Path, hashes: Mapping[str, str]) -> bool:
    """Return whether a model is an export, by its config.json and what is known of the hashes of its files."""
    place = exported(config.parent)
    if place is None or place.kind == "export":
        return place is not None
    return all(hashes.get(name, expected) == expected for name, expected in place.hashes.items())
