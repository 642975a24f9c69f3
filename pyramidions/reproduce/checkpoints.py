"""What the checkpoints of an interrupted or finished run say."""

from pathlib import Path
from typing import Any

import torch

from pyramidions.data.archive import is_whole_checkpoint


def training(path: Path) -> dict[str, Any] | None:
    """Return seconds, updates, epochs and the best score of a run, from its last checkpoint; None if it is damaged."""
    if not is_whole_checkpoint(path):
        return None
    # Mapped: only what is looked at is read.
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    extra = state["extra_state"]
    metric = state["cfg"]["checkpoint"]["best_checkpoint_metric"]
    return {
        "seconds": extra["previous_training_time"],
        "updates": state["optimizer_history"][-1]["num_updates"],
        # The iterator's epoch is the one to come where the last one is over.
        "epochs": extra["train_iterator"]["epoch"] - (extra["train_iterator"]["iterations_in_epoch"] == 0),
        "best": {"metric": metric, "value": extra["best"]} if "best" in extra else None,
    }
