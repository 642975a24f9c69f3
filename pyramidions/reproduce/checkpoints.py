"""What the checkpoints of an interrupted or finished run say."""

from pathlib import Path
from typing import Any

from pyramidions.data.archive import is_whole_checkpoint
from pyramidions.data.run_facts import RunFacts


def training(path: Path) -> dict[str, Any] | None:
    """Return seconds, updates, epochs and the best score of a run; None if the checkpoint is damaged or no run's."""
    facts = RunFacts.of(path) if is_whole_checkpoint(path) else None
    if facts is None:
        return None
    return {
        "seconds": facts.seconds,
        "updates": facts.updates,
        "epochs": facts.epochs,
        "best": None if facts.best is None else {"metric": facts.metric, "value": facts.best},
    }
