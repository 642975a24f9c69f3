"""Trained models on disk: fairseq's checkpoints, and exported folders that need neither fairseq nor pickle."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from pyramidions.data.atomic import atomic_folder
from pyramidions.data.tokenizer import PAD, Tokenizer
from pyramidions.errors import UserError
from pyramidions.inference.checkpoint_file import read_checkpoint
from pyramidions.models import PyramidionConfig, build
from pyramidions.nn import Transformer

WEIGHTS, CONFIG, TOKENIZER = "model.safetensors", "config.json", "sentencepiece.model"
FORMAT = 1
#: In this order a folder's checkpoint is chosen.
CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt")
# Encoder and decoder share their embeddings; a file of weights holds each tensor once.
_SHARED, _OWNER = "encoder.embedding.weight", "decoder.embedding.weight"


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
    raise UserError(f"{path} must hold an exported model ({CONFIG}) or {' or '.join(CHECKPOINTS)}, but holds neither.")


def _from_checkpoint(path: Path) -> SavedModel:
    state = read_checkpoint(path)
    try:
        config, task = state["cfg"]["model"], state["task_state"]
        tokenizer, source, target = (
            task[name] for name in ("tokenizer", "max_source_positions", "max_target_positions")
        )
    except (KeyError, TypeError):
        raise UserError(f"{path} must be a checkpoint of --task long_document_summarization, but is none.") from None
    # What fairseq's face calls encoder.core.x is encoder.x of the model itself.
    weights = {name.replace(".core.", ".", 1): value for name, value in state["model"].items() if name != "vocabulary"}
    return _assembled(path, config, weights, Tokenizer(tokenizer), source, target)


def _from_export(folder: Path) -> SavedModel:
    try:
        about = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if about["format"] != FORMAT:
            raise UserError(f"{folder / CONFIG} must be of format {FORMAT}, but is of {about['format']}.")
        weights = load_file(folder / WEIGHTS)
        weights[_SHARED] = weights[_OWNER]
        config, source, target = about["model"], about["max_source_positions"], about["max_target_positions"]
    except FileNotFoundError as error:
        raise UserError(f"The exported model lacks {error.filename or folder / WEIGHTS}.") from None
    except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise UserError(f"The exported model {folder} is damaged ({error}).") from None
    return _assembled(folder, config, weights, Tokenizer.from_file(folder / TOKENIZER), source, target)


def _assembled(
    path: Path, config: dict[str, Any], weights: dict[str, Tensor], tokenizer: Tokenizer, source: int, target: int
) -> SavedModel:
    known = {field.name for field in fields(PyramidionConfig)}
    shape = PyramidionConfig(**{name: value for name, value in config.items() if name in known})
    # As the task tells the model in training.
    shape.max_source_positions = source
    try:
        transformer = build(shape, tokenizer.vocab_size, PAD)
        transformer.load_state_dict(weights)
    except (ValueError, RuntimeError) as error:
        raise UserError(f"The weights of {path} do not fit its config: {' '.join(str(error).split())}") from None
    return SavedModel(transformer.float().eval(), shape, tokenizer, source, target)


def export_model(model: SavedModel, folder: str | Path, card: str) -> None:
    """Write a model as a folder of files that need no pickle; it appears whole or not at all.

    Args:
        model: the model.
        folder: to be made, or replaced.
        card: what its README.md says.
    """
    weights = {name: value.contiguous() for name, value in model.transformer.state_dict().items() if name != _SHARED}
    about = {
        "format": FORMAT,
        "model": asdict(model.config),
        "max_source_positions": model.max_source_positions,
        "max_target_positions": model.max_target_positions,
    }
    with atomic_folder(folder) as partial:
        # The library's own writing would leave a file that only its owner may read.
        (partial / WEIGHTS).write_bytes(save(weights))
        (partial / CONFIG).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        (partial / TOKENIZER).write_bytes(model.tokenizer.model_bytes)
        (partial / "README.md").write_text(card, encoding="utf-8")
