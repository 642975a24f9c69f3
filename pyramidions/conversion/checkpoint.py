"""Writes a model as a checkpoint that fairseq's commands and ours read, without fairseq."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from pyramidions.files.atomic import atomic_file
from pyramidions.models.checkpoints import FORMAT, VOCABULARY, fingerprint
from pyramidions.pretrained.saved_model import SavedModel

_MODEL, _TASK = "pyramidion", "long_document_summarization"


def write_checkpoint(path: Path, model: SavedModel) -> None:
    """Write a model that no update has changed yet; the file appears whole or not at all.

    Args:
        path: the file.
        model: the model, which says where its weights come from.

    Raises:
        OSError: it cannot be written.
    """
    weights = {
        name.replace(".", ".core.", 1): value.contiguous() for name, value in model.transformer.state_dict().items()
    }
    weights[VOCABULARY] = torch.tensor(fingerprint(model.tokenizer.pieces()))
    lengths = {
        "max_source_positions": model.max_source_positions,
        "max_target_positions": model.max_target_positions,
    }
    state: dict[str, Any] = {
        "args": None,
        "cfg": {
            "model": {"_name": _MODEL, "config_format": FORMAT, **asdict(model.config)},
            "task": {"_name": _TASK, "data": "", **lengths, "source_prefix": model.source_prefix},
        },
        "model": weights,
        "criterion": None,
        "optimizer_history": [
            {"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {"best": None}, "num_updates": 0}
        ],
        "task_state": {**lengths, "source_prefix": model.source_prefix, **model.tokenizer.as_recorded()},
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
        "source": None if model.origin is None else model.origin.known(),
    }
    with atomic_file(path) as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:
            # Where a disk is full, torch finds that it did not write as much as it meant to.
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None
