"""What the checkpoints of an interrupted or finished run say."""

import shutil
import zipfile
from pathlib import Path
from typing import Any

import torch

_LAST = "checkpoint_last.pt"


def training(path: Path) -> dict[str, Any] | None:
    """Return seconds, updates, epochs and the best score of a run, from its last checkpoint; None if it is damaged."""
    if not _is_whole(path):
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


def repair(folder: Path) -> list[str]:
    """Put the newest whole checkpoint in the place of a truncated last one; say what was done.

    fairseq copies checkpoints to checkpoint_last.pt, and a kill in that window leaves a part of it. Nothing is deleted.
    """
    last = folder / _LAST
    if not last.exists() or _is_whole(last):
        return []
    damaged = last.with_suffix(".damaged")
    last.replace(damaged)
    others = sorted(folder.glob("checkpoint*.pt"), key=lambda path: path.stat().st_mtime, reverse=True)
    whole = next((path for path in others if _is_whole(path)), None)
    if whole is None:
        return [f"{last} was damaged (now {damaged.name}), and there is no other: training starts anew."]
    partial = last.with_suffix(".partial")
    shutil.copyfile(whole, partial)
    partial.replace(last)
    return [f"{last} was damaged (now {damaged.name}): training goes on from {whole.name}."]


def _is_whole(path: Path) -> bool:
    """Whether a checkpoint ends as it should: torch's format is a zip archive, whose directory comes last."""
    return path.is_file() and zipfile.is_zipfile(path)
