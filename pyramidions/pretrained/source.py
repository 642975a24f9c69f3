"""Reads a pretrained model from a folder as the Hugging Face hub keeps it: configs, weights and licence."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.files.bounded import read_regular
from pyramidions.files.hub import fetch, when_damaged
from pyramidions.pretrained.checkpoint_file import check_weights, load_safely
from pyramidions.pretrained.fairseq_archive import archive_name, read_archive
from pyramidions.pretrained.places import (
    CARD,
    CONFIG,
    GENERATION_CONFIG,
    TOKENIZER_CONFIG,
    Place,
    check_hashes,
    read_json,
)
from pyramidions.pretrained.tokenizers import ADDED, JSON, SLOW

#: Files of weights, in the order in which they are looked for; an index names the files of a model that has several.
WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
# What config.json says of generation beside generation_config.json.
_OF_CONFIG = ("bos_token_id", "pad_token_id", "eos_token_id", "decoder_start_token_id", "prefix")
# What is read of a model on the hub.
_ABOUT = (GENERATION_CONFIG, CARD)
_TOKENIZERS = (JSON, TOKENIZER_CONFIG, ADDED, *SLOW)
IN_SAFETENSORS = (*WEIGHTS[:2], "model-*-of-*.safetensors")
_PICKLED_WEIGHTS = (*WEIGHTS[2:], "pytorch_model-*-of-*.bin")


class Source(NamedTuple):
    """A pretrained model as it was found: its settings have not been checked."""

    path: Path  # of the folder
    name: str  # on the hub, or of the folder
    commit: str | None  # on the hub, or None
    config: dict[str, Any]  # of the architecture
    generation: dict[str, Any]  # how it writes, from generation_config.json, else from config.json
    weights: dict[str, Tensor]  # by name, in the floating-point format of the files
    licence: str | None  # as the model card says, or None
    # A tokenizer.json of an archive of fairseq; None where the tokenizer is a file of the folder.
    vocabulary: bytes | None = None
    said: frozenset[str] = frozenset()  # names that generation_config.json says


def read_source(place: Place, check: Callable[[Source], object]) -> Source:
    """Read a folder, a model on the hub, or an archive of fairseq.

    ``check`` refuses a model by its settings: its source has no weights yet, which are downloaded afterwards.
    """
    path, commit, hub, config = place.path, place.commit, place.hub, place.config
    if place.kind == "fairseq":
        archive = read_archive(path)
        own, config = archive_name(path), archive.config
        return Source(path, own, None, config, config, archive.weights, None, archive.vocabulary)
    if path.is_file():
        raise UserError(f"A pretrained model must be a folder, but {path} is a file.")
    if place.kind != "transformers":
        raise UserError(f"{path} must be a model of transformers, with a {CONFIG}, but is none.")
    if hub:
        fetch(hub, _ABOUT, commit)
    has_file = (path / GENERATION_CONFIG).exists()
    said = read_json(path / GENERATION_CONFIG) if has_file else {}
    own = hub.name if hub else path.resolve().name
    # Where that file is there, transformers reads nothing else of this; what an older config says of summaries counts
    # all the same, since such a file often names tokens alone.
    kept = {name: value for name, value in config.items() if name in _OF_CONFIG}
    generation = (kept if has_file else config) | _of_summaries(config) | said
    source = Source(path, own, commit, config, generation, {}, _licence(path / CARD), said=frozenset(said))
    check(source)
    if hub:
        fetch(hub, [*_TOKENIZERS, *IN_SAFETENSORS], commit)
        if not any((path / safe).is_file() for safe in WEIGHTS[:2]):
            fetch(hub, _PICKLED_WEIGHTS, commit)
    check_hashes(path, place.hashes)
    return source._replace(weights=read_weights(path))


def _of_summaries(config: dict[str, Any]) -> dict[str, Any]:
    """Return how a model writes summaries, where its config says so beside other tasks, as those of older models do."""
    tasks = config.get("task_specific_params")
    found = tasks.get("summarization") if isinstance(tasks, dict) else None
    return found if isinstance(found, dict) else {}


def read_weights(folder: Path, pickled: bool = True) -> dict[str, Tensor]:
    """Read the weights in a folder, of one file or several, by name; ``pickled`` ones only where that is allowed."""
    names = WEIGHTS if pickled else WEIGHTS[:2]
    name = next((name for name in names if (folder / name).is_file()), None)
    if name is None:
        raise UserError(f"{folder} lacks weights: one of {', '.join(names)}.")
    if pickled and name == WEIGHTS[0] and (folder / WEIGHTS[2]).is_file():
        _refuse_others(_safetensors(folder / name), folder)
    weights: dict[str, Tensor] = {}
    for path in _shards(folder / name) if name.endswith(".json") else [folder / name]:
        part = _safetensors(path) if path.suffix == ".safetensors" else _pickled(path)
        if both := weights.keys() & part.keys():
            raise UserError(f"The weights of {folder} must have one value each, but {min(both)} has two.")
        check_weights(part, path)
        weights |= part
    return weights


def _refuse_others(weights: Mapping[str, Tensor], folder: Path) -> None:
    """Refuse a folder that holds other weights in a second file; one of both may have a narrower type."""
    for name, other in _pickled(folder / WEIGHTS[2]).items():
        value = weights.get(name, other)
        narrow = min(value.dtype, other.dtype, key=lambda dtype: dtype.itemsize)
        if value.shape != other.shape or not value.to(narrow).equal(other.to(narrow)):
            raise UserError(
                f"{WEIGHTS[0]} and {WEIGHTS[2]} of {folder} must hold the same weights, but {name} differs: remove one "
                "of these files."
            )


def _shards(index: Path) -> list[Path]:
    names = read_json(index).get("weight_map")
    files = list(names.values()) if isinstance(names, dict) else []
    for name in files:
        # The names come from outside: no path leads out of the folder.
        if not isinstance(name, str) or not re.fullmatch(r"[\w-][\w.-]*\.(safetensors|bin)", name):
            raise UserError(f"{index} must name files beside it, but names {shown(name)}.")
        if not (index.parent / name).is_file():
            raise UserError(f"{index.parent} lacks {name}, which {index.name} names.")
    if not files:
        raise UserError(f"{index} must name the files of the weights under 'weight_map', but names none.")
    return [index.parent / name for name in sorted(set(files))]


def _safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except SafetensorError as error:
        raise UserError(f"{path} is damaged ({error}){when_damaged(path)}.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from None


def _pickled(path: Path) -> dict[str, Tensor]:
    found = load_safely(path)
    if not isinstance(found, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in found.items()
    ):
        raise UserError(f"{path} must hold weights by name, but holds something else.")
    return dict(found)


def _licence(card: Path) -> str | None:
    """Return the licence in the front matter of a model card."""
    try:
        text = read_regular(card).decode("utf-8", "replace")
    except OSError:
        return None
    front = re.match(r"---\r?\n(.*?)\r?\n---\s", text, re.DOTALL)
    found = front and re.search(r"^license:[ \t]*[\"']?([\w.+-]+)", front[1], re.MULTILINE)
    return found[1] if found else None
