"""Reads the checkpoints of fairseq-train safely: no code in them is run."""

import pickle
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pyramidions.base.errors import UserError
from pyramidions.files.archive import is_damaged
from pyramidions.files.atomic import atomic_file
from pyramidions.models.formats import refuse_older_checkpoint


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU, or refuse one that is damaged, of an older release, or not of finite numbers."""
    state = load_safely(path)
    weights = state.get("model") if isinstance(state, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(w, torch.Tensor) for w in weights.values()):
        raise UserError(f"{path} is no fairseq checkpoint: it lacks the weights under 'model'.")
    if not all(isinstance(name, str) for name in weights):
        raise UserError(f"{path} is no fairseq checkpoint: the names under 'model' must be text.")
    config = {} if state.get("cfg") is None else state["cfg"]
    settings = config.get("model") if isinstance(config, dict) else config
    settings = {} if settings is None else settings
    if not isinstance(settings, dict) or any(isinstance(each, torch.Tensor) for each in settings.values()):
        raise UserError(f"{path} is no fairseq checkpoint: 'cfg' must hold the settings under 'model'.")
    refuse_older_checkpoint(path, settings)
    check_weights(weights, path)
    return state


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint, which appears whole or not at all."""
    with atomic_file(path) as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:
            # Where a disk is full, torch finds that it did not write as much as it meant to.
            raise error.__context__ if isinstance(error.__context__, OSError) else error from None


def check_weights(weights: Mapping[str, torch.Tensor], path: Path) -> None:
    """Refuse weights that are sparse, nested, quantized, complex, of 8 bits, or not finite in float32."""
    for name, weight in weights.items():
        is_tiny = weight.is_floating_point() and weight.itemsize < 2
        is_dense = weight.layout == torch.strided and not (weight.is_quantized or weight.is_meta or weight.is_nested)
        if not is_dense or is_tiny or weight.is_complex():
            kind = "complex" if weight.is_complex() else "of 8 bits" if is_tiny else "sparse, nested or quantized"
            raise UserError(f"The weights of {path} must be plain real numbers, but {name} is {kind}.")
        if weight.is_floating_point() and not weight.float().isfinite().all():
            raise UserError(f"The weights of {path} must be finite, but {name} holds NaN or infinity.")


def load_safely(path: Path, *allowed: type, name: Path | None = None) -> Any:
    """Read what `torch.save` wrote, onto the CPU; errors call it by a name, or by its path if None.

    ``allowed`` are classes that it may hold beside plain values, which run no code when they are made.
    """
    name = name or path
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise UserError(f"The checkpoint {name} must be a file, but is {kind}.")
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"The checkpoint {name} does not exist.") from None
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}.") from None
    with file:
        # torch does not compare the records with their checksums.
        if is_damaged(path):
            raise UserError(f"{name} is damaged or no checkpoint.")
        try:
            # Of damage, one sentence below says enough.
            with torch.serialization.safe_globals(list(allowed)), warnings.catch_warnings(action="ignore"):
                return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            # Damaged bytes can make torch raise any error.
            if isinstance(error, pickle.UnpicklingError) and "unsupported global" in str(error).lower():
                raise UserError(f"{name} holds more than tensors and plain values; it is not loaded.") from None
            raise UserError(f"{name} is damaged or no checkpoint.") from None
