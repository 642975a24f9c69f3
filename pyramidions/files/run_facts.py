"""What a checkpoint says about the run that wrote it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional


def start_of(path: Path) -> tuple[dict[str, str] | None, Mapping[str, Any]]:
    """Return a checkpoint's facts about the pretrained model that it started from, and its model's config.

    None, and no fields, where it says nothing.
    """
    try:
        state = _mapped(path)
        found = state.get("source", (state.get("task_state") or {}).get("source"))
        config = (state.get("cfg") or {}).get("model")
    except Exception:
        # Damaged bytes make torch raise whatever it happens to run into; fairseq says that they are damaged.
        return None, {}
    return found if isinstance(found, dict) else None, config if isinstance(config, dict) else {}


@dataclass(frozen=True)
class RunFacts:
    """What a checkpoint says about the run that wrote it."""

    updates: int  # done so far
    seconds: float  # of training so far
    epochs: int  # begun so far
    metric: str  # the one that the best checkpoint is chosen by
    best: float | None  # the best value of the metric so far; None before the first validation
    is_best: bool  # no earlier validation had a better score
    scheduler: str | None  # its --lr-scheduler
    frozen: str | None  # its --freeze; None if all weights learn
    model: Mapping[str, Any]  # the fields of its model's config
    weights: tuple[str, ...]  # the names of its weights, in their order

    @classmethod
    def of(cls, path: Path) -> Optional["RunFacts"]:
        """Read a checkpoint; None if it is damaged or no run's."""
        try:
            state = _mapped(path)
            extra = state["extra_state"]
            iterator = extra["train_iterator"]
            return cls(
                updates=state["optimizer_history"][-1]["num_updates"],
                seconds=extra["previous_training_time"],
                # The iterator's epoch is the one to come where the last one is over.
                epochs=iterator["epoch"] - (iterator["iterations_in_epoch"] == 0),
                metric=state["cfg"]["checkpoint"]["best_checkpoint_metric"],
                best=extra.get("best"),
                is_best=extra.get("val_loss") is not None and extra["val_loss"] == extra.get("best"),
                scheduler=(state["cfg"].get("lr_scheduler") or {}).get("_name"),
                frozen=(state["cfg"].get("task") or {}).get("freeze"),
                model=dict(state["cfg"].get("model") or {}),
                weights=tuple(state["model"]),
            )
        except Exception:
            # Damaged bytes make torch raise whatever it happens to run into.
            return None


def _mapped(path: Path) -> dict[str, Any]:
    """Return what a checkpoint holds; only what is looked at is read."""
    # A run without a checkpoint needs no torch.
    import torch

    return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
