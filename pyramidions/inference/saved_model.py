"""Trained models on disk: fairseq's checkpoints, and exported folders that need neither fairseq nor pickle."""

import json
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from pyramidions.data.manifest import file_hash
from pyramidions.errors import UserError
from pyramidions.files.atomic import atomic_folder, sync
from pyramidions.inference.checkpoint_file import check_weights, read_checkpoint
from pyramidions.models import PyramidionConfig, build
from pyramidions.models.config import check_lengths, config_of, shown
from pyramidions.models.names_0_1 import rename_from_0_1
from pyramidions.nn import Transformer
from pyramidions.strict_json import parse_json
from pyramidions.text.tokenizer import PAD, Tokenizer

WEIGHTS, CONFIG, TOKENIZER, CARD = "model.safetensors", "config.json", "sentencepiece.model", "README.md"
FORMAT = 2
#: In this order a folder's checkpoint is chosen.
CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt")
# Encoder and decoder share their embeddings; a file of weights holds each tensor once.
_SHARED, _OWNER = "encoder.embedder.tokens.weight", "decoder.embedder.tokens.weight"


@dataclass(frozen=True)
class SavedModel:
    """A trained model with all that it takes to summarize a text.

    Attributes:
        transformer: in evaluation mode, on the CPU, in float32.
        config: its shape and decoding settings.
        tokenizer: of documents and summaries.
        max_source_positions: most tokens of a document, its end included.
        max_target_positions: most tokens of a summary, its end included.
    """

    transformer: Transformer
    config: PyramidionConfig
    tokenizer: Tokenizer
    max_source_positions: int
    max_target_positions: int


def load_model(path: str | Path) -> SavedModel:
    """Read a checkpoint of fairseq-train, the best in a folder of them, or a folder made by `export_model`.

    Raises:
        UserError: nothing of the kind is there, or it is damaged, or of another task or architecture.
    """
    path = Path(path)
    if not path.exists():
        raise UserError(f"The model {path} does not exist.")
    if path.is_file():
        return _from_checkpoint(path)
    if (path / CONFIG).exists():
        return _from_export(path)
    for name in CHECKPOINTS:
        if (path / name).exists():
            return _from_checkpoint(path / name)
    raise UserError(
        f"{path} must hold an exported model ({CONFIG}), {' or '.join(CHECKPOINTS)}, but holds none of them."
    )


def _from_checkpoint(path: Path) -> SavedModel:
    state = read_checkpoint(path)
    task = state.get("task_state")
    config = (state.get("cfg") or {}).get("model")
    if not isinstance(task, dict) or "tokenizer" not in task or not config:
        raise UserError(f"{path} must be a checkpoint of --task long_document_summarization, but is none.")
    # fairseq's own fields stand among the model's.
    known = {field.name for field in fields(PyramidionConfig)}
    settings = _Settings(
        {name: value for name, value in config.items() if name in known},
        task.get("max_source_positions"),
        task.get("max_target_positions"),
    )
    # What fairseq's face calls encoder.core.x is encoder.x of the model itself.
    weights = {name.replace(".core.", ".", 1): value for name, value in state["model"].items() if name != "vocabulary"}
    return _assembled(path, settings, weights, _tokenizer(path, task["tokenizer"]))


def _from_export(folder: Path) -> SavedModel:
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if not (folder / name).is_file():
            raise UserError(f"The exported model {folder} lacks {name}.")
    settings, hashes = _read_config(folder / CONFIG)
    for name, expected in hashes.items():
        if file_hash(folder / name) != expected:
            raise UserError(f"{folder / name} is damaged: its SHA-256 is not the one in {CONFIG}.")
    try:
        weights = load_file(folder / WEIGHTS)
    except SafetensorError as error:
        raise UserError(f"{folder / WEIGHTS} is damaged ({error}).") from None
    check_weights(weights, folder / WEIGHTS)
    return _assembled(folder, settings, weights, Tokenizer.from_file(folder / TOKENIZER))


class _Settings(NamedTuple):
    """What a file says about a model, as it was found: nothing of it has been checked."""

    config: dict[str, Any]
    source: Any
    target: Any


def _read_config(path: Path) -> tuple[_Settings, dict[str, str]]:
    """Read config.json: the settings, and the SHA-256 of other files by name, none in exports of 0.1.0."""
    try:
        about = parse_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}.") from None
    if not isinstance(about, dict) or "format" not in about:
        raise UserError(f"{path} must be as written by `pyramidions export`.")
    if about["format"] is True or about["format"] not in (1, FORMAT):
        raise UserError(f"{path} must be of format 1 or {FORMAT}, but is of {shown(about['format'])}.")
    config, hashes = about.get("model"), about.get("sha256", {})
    if not isinstance(config, dict):
        raise UserError(f"{path} is damaged: `model` must hold the model's settings.")
    if hashes != {} and not (isinstance(hashes, dict) and hashes.keys() == {WEIGHTS, TOKENIZER}):
        raise UserError(f"{path} is damaged: `sha256` must hold the hashes of {WEIGHTS} and {TOKENIZER}.")
    if about["format"] == 1:
        # An axis of one kind in 0.1.0; it is called `stack` today.
        config.pop("residual", None)
    return _Settings(config, about.get("max_source_positions"), about.get("max_target_positions")), hashes


def _tokenizer(path: Path, model_bytes: Any) -> Tokenizer:
    if not isinstance(model_bytes, bytes):
        raise UserError(f"The tokenizer in {path} must be bytes, but is {shown(model_bytes)}.")
    try:
        return Tokenizer(model_bytes)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def _assembled(path: Path, settings: _Settings, weights: dict[str, Tensor], tokenizer: Tokenizer) -> SavedModel:
    source, target = settings.source, settings.target
    try:
        check_lengths(source, target)
        # As the task tells the model in training.
        config = config_of({**settings.config, "max_source_positions": source})
        # Without memory: what is damaged may ask for any amount of it.
        with torch.device("meta"):
            transformer = build(config, tokenizer.vocab_size, PAD)
    except UserError as error:
        raise UserError(f"The settings of {path} are damaged: {error}") from None
    rename_from_0_1(weights)
    if _OWNER in weights:
        weights.setdefault(_SHARED, weights[_OWNER])
    _refuse_misfits(path, transformer, weights)
    transformer.load_state_dict(weights, assign=True)
    return SavedModel(transformer.float().eval(), config, tokenizer, source, target)


def _refuse_misfits(path: Path, transformer: Transformer, weights: dict[str, Tensor]) -> None:
    expected = transformer.state_dict()
    head = f"The weights of {path} do not fit its settings:"
    for name in [*expected, *weights]:
        if name not in weights:
            raise UserError(f"{head} {name} is missing.")
        if name not in expected:
            raise UserError(f"{head} {name} has no place in the model.")
        if (found := tuple(weights[name].shape)) != (shape := tuple(expected[name].shape)):
            raise UserError(f"{head} {name} must be {shape}, but is {found}.")
        if not weights[name].is_floating_point():
            raise UserError(f"{head} {name} must be floating-point numbers, but is {weights[name].dtype}.")


def refuse_foreign(folder: Path) -> None:
    """Refuse to replace what is no export.

    Raises:
        UserError: there is a file, or a folder that holds anything else.
    """
    if file := next((parent for parent in folder.parents if parent.exists() and not parent.is_dir()), None):
        raise UserError(f"The folder of an export must lie in a folder, but {file} is a file.")
    rule = f"The folder of an export must be new, empty or an older export, but {folder}"
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{rule} is {'a file' if folder.is_file() else 'no folder'}.")
    found = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if others := found - {WEIGHTS, CONFIG, TOKENIZER, CARD} if CONFIG in found else found:
        raise UserError(f"{rule} holds {min(others)}.")
    if found:
        try:
            _read_config(folder / CONFIG)
        except (OSError, UserError):
            raise UserError(f"{rule} holds a {CONFIG} of something else.") from None


def export_model(model: SavedModel, folder: str | Path, card: str) -> None:
    """Write a model as a folder of files that need no pickle; it appears whole or not at all.

    Args:
        model: the model.
        folder: to be made, or replaced where it is an older export.
        card: what its README.md says.

    Raises:
        UserError: the folder holds something else.
        OSError: it cannot be written; `filename` is the folder.
    """
    # A link stays one: the folder that it names is replaced.
    folder = Path(folder).resolve()
    refuse_foreign(folder)
    weights = {name: value.contiguous() for name, value in model.transformer.state_dict().items() if name != _SHARED}
    # The library's own writing would leave a file that only its owner may read.
    files = {WEIGHTS: save(weights), TOKENIZER: model.tokenizer.model_bytes}
    about = {
        "format": FORMAT,
        "model": asdict(model.config),
        "max_source_positions": model.max_source_positions,
        "max_target_positions": model.max_target_positions,
        "sha256": {name: sha256(content).hexdigest() for name, content in files.items()},
    }
    files |= {CONFIG: (json.dumps(about, indent=1) + "\n").encode(), CARD: card.encode()}
    try:
        with atomic_folder(folder) as partial:
            for name, content in files.items():
                with (partial / name).open("wb") as file:
                    file.write(content)
                    sync(file)
    except OSError as error:
        # Nobody asked for the hidden folder beside it.
        error.filename, error.filename2 = str(folder), None
        raise
