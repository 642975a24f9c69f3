"""Reads what lies at a place: a checkpoint, an export, or a model of transformers, all alike to who builds a model."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.files.hub import fetch
from pyramidions.models.config import PyramidionConfig
from pyramidions.models.formats import refuse_older
from pyramidions.pretrained.checkpoint_file import read_checkpoint
from pyramidions.pretrained.export_folder import TOKENIZERS, WEIGHTS
from pyramidions.pretrained.model_kinds import KINDS, LANGUAGE_MODEL, SUMMARIZER, ModelKind
from pyramidions.pretrained.places import (
    CONFIG,
    KNOWN_FAMILIES,
    LONG,
    MODEL_TYPE,
    Place,
    PlaceKind,
    check_hashes,
    place_of,
    place_of_network,
    unknown_family,
)
from pyramidions.text.tokenizer import Numbering, Tokenizer

#: How a language model calls the characters that it reads at once.
WINDOW = "tokens_per_sample"
# How a pretrained model reads documents that are longer than it reads.
_PRETRAINED_LONG = "extract"


class Bundle(NamedTuple):
    """What a place says about a model of any kind: only its weights and its tokenizer have been checked."""

    name: str  # of the place, for errors
    kind: ModelKind
    config: dict[str, Any]  # its fields by name
    settings: Mapping[str, Any]  # by name: what the task says of itself, or all of an export's config.json
    weights: dict[str, Tensor]  # by name
    tokenizer: Tokenizer | None  # of a model of documents; None for a language model
    arch: Any = None  # as fairseq calls the architecture; None of an export


def read_bundle(path: str | Path, *wanted: ModelKind) -> Bundle:
    """Read what `place_of` finds, if it is one of the kinds of models that are wanted.

    Raises:
        UserError: nothing of the kind is there, or it is damaged, or of another kind or architecture.
    """
    place = place_of_network(path)
    return _READERS[place.kind](place, wanted)


def reads_long(path: str | Path) -> str:
    """Return how a model that writes was trained to read documents that are longer than it reads."""
    place = place_of(path)
    if place.family in KNOWN_FAMILIES:
        return str(place.config.get(LONG, _PRETRAINED_LONG))
    config = described_model(place)[1] if place.kind == "export" else read_bundle(path, SUMMARIZER).config
    return str(config.get("decoding_long", PyramidionConfig.decoding_long))


def _read_checkpoint(place: Place, wanted: Collection[ModelKind]) -> Bundle:
    path = place.path
    state = read_checkpoint(path)
    settings = state.get("cfg") or {}
    config = settings.get("model") or {}
    said, task = (each if isinstance(each, Mapping) else {} for each in (state.get("task_state"), settings.get("task")))
    kind = _trained_kind(path, task.get("_name", SUMMARIZER.task), said, config, wanted)
    _refuse_other(place, kind, wanted)
    tokenizer = None
    if kind is LANGUAGE_MODEL:
        said = {WINDOW: task.get(WINDOW), **said}
    else:
        said = {**said, **{name: state[name] for name in ("source",) if name in state}}
        try:
            tokenizer = Tokenizer.from_recorded(said)
        except UserError as error:
            raise UserError(f"{path}: {error}") from None
    # fairseq's own fields stand among the model's.
    known = {each.name for each in fields(kind.config)}
    shape = {name: value for name, value in config.items() if name in known}
    # fairseq's encoder.core.x is encoder.x; of an extractor, x is core.x, and of a language model decoder.core.x.
    core = "decoder.core." if kind is LANGUAGE_MODEL else "core."
    weights = {
        name.removeprefix(core) if name.startswith(core) else name.replace(".core.", ".", 1): value
        for name, value in state["model"].items()
        if name != "vocabulary"
    }
    return Bundle(str(path), kind, shape, said, weights, tokenizer, config.get("_name"))


def _trained_kind(
    path: Path, task: str, said: Mapping[str, Any], config: Mapping[str, Any], wanted: Collection[ModelKind]
) -> ModelKind:
    """Return the kind of model that a task trains, or refuse a checkpoint of none of ours."""
    kind = next((kind for kind in KINDS.values() if kind.task == task), None)
    has_texts = (kind or SUMMARIZER).vocabulary in said
    rule = f"{path} must be a checkpoint of --task {' or '.join(kind.task for kind in wanted)}, but"
    if kind is None and config:
        use = "train it on with --finetune-from-model" if has_texts else "use fairseq's own commands"
        raise UserError(f"{rule} was trained with --task {task}: {use}.")
    if kind is None or not has_texts or not config:
        raise UserError(f"{rule} is none.")
    return kind


def _read_export(place: Place, wanted: Collection[ModelKind]) -> Bundle:
    # Other models need none of it.
    from pyramidions.pretrained.source import IN_SAFETENSORS, read_weights

    kind, config = described_model(place)
    # The weights of another kind of model are not worth their download.
    _refuse_other(place, kind, wanted)
    folder, hashes = place.path, place.hashes
    if place.hub is not None:
        folder = fetch(place.hub, [*IN_SAFETENSORS, *TOKENIZERS], place.commit)
    check_hashes(folder, hashes)
    weights, tokenizer = read_weights(folder, pickled=False), None
    if kind is not LANGUAGE_MODEL:
        held = hashes or [name for name in TOKENIZERS if (folder / name).is_file()]
        file = next((name for name in TOKENIZERS if name in held), TOKENIZERS[0])
        tokenizer = Tokenizer.from_file(folder / file, Numbering.recorded(place.config.get("special_tokens")))
    return Bundle(str(folder), kind, config, place.config, weights, tokenizer)


def described_model(place: Place) -> tuple[ModelKind, dict[str, Any]]:
    """Return what config.json of an export says of the kind of model, and of its fields, or refuse what is damaged."""
    about, path = place.config, place.path / CONFIG
    refuse_older(place.name, about["format"])
    kind, config = about.get("kind", SUMMARIZER.name), about.get("model")
    if not isinstance(kind, str) or kind not in KINDS:
        raise UserError(f"{path} is damaged: `kind` must be one of {', '.join(KINDS)}, but is {shown(kind)}.")
    if not isinstance(config, dict):
        raise UserError(f"{path} is damaged: `model` must hold the model's settings.")
    whole = [{WEIGHTS}] if kind == LANGUAGE_MODEL.name else [{WEIGHTS, name} for name in TOKENIZERS]
    # transformers writes no hashes.
    if place.hashes and place.hashes.keys() not in whole:
        raise UserError(f"{path} is damaged: `sha256` must hold the hashes of {' and '.join(sorted(whole[0]))}.")
    return KINDS[kind], config


def _read_pretrained(place: Place, wanted: Collection[ModelKind]) -> Bundle:
    """Read a model of transformers; of a document that is longer than it reads, the most important sentences."""
    family = place.config.get("model_type", MODEL_TYPE)
    if family == MODEL_TYPE:
        raise UserError(f"{place.path / CONFIG} must be as written by `pyramidions export`.")
    if SUMMARIZER not in wanted:
        tasks = " or ".join(kind.task for kind in wanted)
        raise UserError(
            f"{place.name} must hold a model of --task {tasks}, but holds one of transformers, of the family "
            f"{shown(family)}."
        )
    if family not in KNOWN_FAMILIES:
        raise unknown_family(place.name, family)
    # Other models need none of it.
    from pyramidions.pretrained.reading import read_pretrained

    found = read_pretrained(place)
    about, shape = found.origin, found.shape
    commit = "" if about.revision is None else f" of the hub, commit {about.revision[:12]}"
    without = "".join(f"; {name} {shown(value)} is not applied" for name, value in found.not_applied.items())
    note(f"{place.name}{commit}: a model of the family {about.family}, licence {about.licence or 'not said'}{without}.")
    settings = {
        "max_source_positions": shape.max_source_positions,
        "max_target_positions": shape.max_target_positions,
        "source_prefix": shape.source_prefix,
        "source": about.known(),
    }
    config = {**asdict(found.config), "decoding_long": str(place.config.get(LONG, _PRETRAINED_LONG))}
    return Bundle(place.name, SUMMARIZER, config, settings, found.weights, found.tokenizer)


_READERS: dict[PlaceKind, Callable[[Place, Collection[ModelKind]], Bundle]] = {
    "checkpoint": _read_checkpoint,
    "export": _read_export,
    "transformers": _read_pretrained,
}


def _refuse_other(place: Place, kind: ModelKind, wanted: Collection[ModelKind]) -> None:
    if kind not in wanted:
        lacks = "draws no segments of characters, but " if tuple(wanted) == (LANGUAGE_MODEL,) else ""
        raise UserError(f"The model {place.name} {lacks}{kind.purpose.format(path=place.name)}.")
