"""What the checkpoints of an interrupted or finished run say."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import torch


def training(path: Path) -> dict[str, Any] | None:
    """Return seconds, updates, epochs and the best score of a run, from its last checkpoint; None if it is damaged."""
    state = _loaded(path)
    if state is None:
        return None
    extra = state["extra_state"]
    metric = state["cfg"]["checkpoint"]["best_checkpoint_metric"]
    return {
        "seconds": extra["previous_training_time"],
        "updates": state["optimizer_history"][-1]["num_updates"],
        # The iterator's epoch is the one to come where the last one is over.
        "epochs": extra["train_iterator"]["epoch"] - (extra["train_iterator"]["iterations_in_epoch"] == 0),
        "best": {"metric": metric, "value": extra["best"]} if "best" in extra else None,
    }


def repair(folder: Path) -> list[str]:
    """Put a whole checkpoint in the place of a damaged last one; say what was done.

    fairseq copies its best checkpoint to checkpoint_last.pt, and a kill in that window leaves a part of it.
    """
    last, best = folder / "checkpoint_last.pt", folder / "checkpoint_best.pt"
    if not last.exists() or _loaded(last) is not None:
        return []
    if best.exists() and _loaded(best) is not None:
        partial = folder / "checkpoint_last.pt.partial"
        shutil.copy2(best, partial)
        partial.replace(last)
        return [f"{last} was damaged: training goes on from checkpoint_best.pt."]
    last.unlink()
    return [f"{last} was damaged, and there is no other: training starts anew."]


def _loaded(path: Path) -> dict[str, Any] | None:
    try:
        # Mapped: only what is looked at is read.
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError):
        return None
    return state
