"""Finds trained models on disk: checkpoints of fairseq-train, and exported folders that need neither it nor pickle."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from pyramidions.base.arguments import shown
from pyramidions.base.errors import UserError
from pyramidions.base.notes import note
from pyramidions.files.hub import fetch, when_damaged
from pyramidions.inference.export_folder import TOKENIZERS, WEIGHTS, check_config, check_hashes, require
from pyramidions.inference.model_kinds import KINDS, LANGUAGE_MODEL, SUMMARIZER, ModelKind
from pyramidions.models.config import PyramidionConfig
from pyramidions.pretrained.checkpoint_file import check_weights, read_checkpoint
from pyramidions.pretrained.known_families import KNOWN_FAMILIES, LONG
from pyramidions.pretrained.places import CHECKPOINTS, CONFIG, Place, place_of
from pyramidions.text.tokenizer import Numbering, Tokenizer

#: How a language model calls the characters that it reads at once.
WINDOW = "tokens_per_sample"
# How a pretrained model reads documents that are longer than it reads.
_PRETRAINED_LONG = "extract"


class FoundFile(NamedTuple):
    """What a file says about a model of any kind, as it was found: none of it has been checked but the weights.

    Attributes:
        path: of the file or folder.
        kind: of the model.
        config: its fields by name.
        settings: by name: what the task says of itself, or all of an export's config.json.
        weights: by name.
        arch: as fairseq calls the architecture; None of an export.
    """

    path: Path
    kind: ModelKind
    config: dict[str, Any]
    settings: Mapping[str, Any]
    weights: dict[str, Tensor]
    arch: Any = None

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer of a model of documents.

        Raises:
            UserError: it is damaged.
        """
        if isinstance(found := self.settings.get("tokenizer"), Tokenizer):
            return found
        if self.path.is_dir():
            file = self.path / _tokenizer_file(self.path, self.settings)
            return Tokenizer.from_file(file, Numbering.recorded(self.settings.get("special_tokens")))
        try:
            return Tokenizer.from_recorded(self.settings)
        except UserError as error:
            raise UserError(f"{self.path}: {error}") from None


def find_file(path: str | Path, *wanted: ModelKind) -> FoundFile:
    """Read a checkpoint of fairseq-train, the best in a folder of them, an export, or a model of transformers.

    Args:
        path: of the checkpoint or the folder; or what is no path here, OWNER/NAME or OWNER/NAME@REVISION of an export
            or a model of transformers on the Hugging Face hub.
        wanted: kinds of models that will do.

    Raises:
        UserError: nothing of the kind is there, or it is damaged, or of another kind or architecture.
    """
    place = place_of(path)
    path = place.path
    if place.kind == "checkpoint":
        return _from_checkpoint(path, wanted)
    if place.kind == "transformers" and place.family in KNOWN_FAMILIES and SUMMARIZER in wanted:
        return _pretrained(place)
    if place.kind in ("export", "transformers"):
        return _from_export(place, wanted)
    if place.kind == "fairseq":
        raise UserError(
            f"{path} holds model.pt, as fairseq's own BART does: `pyramidions import {path} -o model.pt` makes a "
            "checkpoint of such a model."
        )
    if place.kind == "concepts":
        raise UserError(f"{path} holds a model of concepts, which extracts: use `pyramidions extract --method {path}`.")
    raise UserError(
        f"{path} must hold an exported model ({CONFIG}), {' or '.join(CHECKPOINTS)}, but holds none of them."
    )


def reads_long(path: str | Path) -> str:
    """Return how a model that writes was trained to read documents that are longer than it reads.

    Raises:
        UserError: as `find_file`.
    """
    place = place_of(path)
    if place.family in KNOWN_FAMILIES:
        return _long_of(place)
    config = check_config(place)["model"] if place.kind == "export" else find_file(path, SUMMARIZER).config
    return str(config.get("decoding_long", PyramidionConfig.decoding_long))


def _long_of(place: Place) -> str:
    """Return how a model of transformers reads long documents, as its config.json says, which is of a known family."""
    return str(place.config.get(LONG, _PRETRAINED_LONG))


def _from_checkpoint(path: Path, wanted: tuple[ModelKind, ...]) -> FoundFile:
    state = read_checkpoint(path)
    said, settings = state.get("task_state"), state.get("cfg") or {}
    config, task = settings.get("model"), settings.get("task")
    name = task.get("_name", SUMMARIZER.task) if isinstance(task, Mapping) else SUMMARIZER.task
    kind = next((kind for kind in KINDS.values() if kind.task == name), None)
    tasks = " or ".join(kind.task for kind in wanted)
    vocabulary = (kind or SUMMARIZER).vocabulary
    if kind is None and config:
        ours = isinstance(said, dict) and vocabulary in said
        use = "train it on with --finetune-from-model" if ours else "use fairseq's own commands"
        raise UserError(f"{path} must be a checkpoint of --task {tasks}, but was trained with --task {name}: {use}.")
    if kind is None or not isinstance(said, dict) or vocabulary not in said or not config:
        raise UserError(f"{path} must be a checkpoint of --task {tasks}, but is none.")
    _refuse_other(path, kind, wanted)
    if kind is LANGUAGE_MODEL and isinstance(task, Mapping):
        said = {WINDOW: task.get(WINDOW), **said}
    elif "source" in state:
        said = {**said, "source": state["source"]}
    # fairseq's own fields stand among the model's.
    known = {each.name for each in fields(kind.config)}
    return FoundFile(
        path,
        kind,
        {name: value for name, value in config.items() if name in known},
        said,
        {_own_name(name, kind): value for name, value in state["model"].items() if name != "vocabulary"},
        config.get("_name"),
    )


def _own_name(name: str, kind: ModelKind) -> str:
    """Return the model's own name of a weight: fairseq's encoder.core.x is encoder.x.

    Of an extractor, x is core.x; of a language model, decoder.core.x.
    """
    if kind is LANGUAGE_MODEL:
        return name.removeprefix("decoder.core.")
    return name.replace(".core.", ".", 1).removeprefix("core.")


def _pretrained(place: Place) -> FoundFile:
    """Read a pretrained model of transformers of a family that can be imported.

    A document that is longer than it reads is read by its most important sentences.
    """
    # Other models need none of it.
    from pyramidions.pretrained.reading import read_pretrained

    found = read_pretrained(place.given)
    about = found.origin
    commit = "" if about.revision is None else f" of the hub, commit {about.revision[:12]}"
    without = "".join(f"; {name} {shown(value)} is not applied" for name, value in found.not_applied.items())
    name = place.hub or place.path
    note(f"{name}{commit}: a model of the family {about.family}, licence {about.licence or 'not said'}{without}.")
    shape = {**asdict(found.config), "decoding_long": _long_of(place)}
    return FoundFile(Path(str(name)), SUMMARIZER, shape, found.settings(), found.weights)


def _from_export(place: Place, wanted: tuple[ModelKind, ...]) -> FoundFile:
    about = check_config(place, wanted)
    kind = _kind(about)
    # The weights of another kind of model are not worth their download.
    _refuse_other(Path(str(place.hub or place.path)), kind, wanted)
    folder = place.path if place.hub is None else fetch(place.hub, [WEIGHTS, *TOKENIZERS], place.commit).path
    require(folder, WEIGHTS, *([] if kind is LANGUAGE_MODEL else [_tokenizer_file(folder, about)]))
    check_hashes(folder, about.get("sha256", {}))
    try:
        weights = load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise UserError(f"{folder / WEIGHTS} is damaged ({error}){when_damaged(folder)}.") from None
    check_weights(weights, folder / WEIGHTS)
    return FoundFile(folder, kind, about["model"], about, weights)


def _kind(about: Mapping[str, Any]) -> ModelKind:
    return KINDS[about.get("kind", SUMMARIZER.name)]


def _tokenizer_file(folder: Path, about: Mapping[str, Any]) -> str:
    hashes = about.get("sha256", {})
    # transformers writes no hashes.
    return next(
        (name for name in TOKENIZERS if (name in hashes if hashes else (folder / name).is_file())), TOKENIZERS[0]
    )


def _refuse_other(path: Path, kind: ModelKind, wanted: tuple[ModelKind, ...]) -> None:
    if kind not in wanted:
        lacks = "draws no segments of characters, but " if wanted == (LANGUAGE_MODEL,) else ""
        raise UserError(f"The model {path} {lacks}{kind.purpose.format(path=path)}.")
