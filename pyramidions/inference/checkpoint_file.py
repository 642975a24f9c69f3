"""Files that fairseq-train writes, read with suspicion."""

import pickle
from pathlib import Path
from typing import Any

import torch

from pyramidions.errors import UserError


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a checkpoint by torch's safe loading, onto the CPU.

    Raises:
        UserError: it is missing, damaged, no checkpoint, or holds more than tensors and plain values.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"The checkpoint {path} does not exist.") from None
    except IsADirectoryError:
        raise UserError(f"The checkpoint {path} must be a file, but is a folder.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        try:
            state = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            # Bytes that are no checkpoint make torch raise whatever they happen to run into.
            if isinstance(error, pickle.UnpicklingError) and "Unsupported global" in str(error):
                raise UserError(f"{path} holds more than tensors and plain values; it is not loaded.") from None
            raise UserError(f"{path} is damaged or no checkpoint.") from None
    weights = state.get("model") if isinstance(state, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(w, torch.Tensor) for w in weights.values()):
        raise UserError(f"{path} is no fairseq checkpoint: it lacks the weights under 'model'.")
    config = state.get("cfg") or {}
    if not isinstance(config, dict) or not isinstance(config.get("model") or {}, dict):
        raise UserError(f"{path} is no fairseq checkpoint: 'cfg' must hold the settings under 'model'.")
    return state
