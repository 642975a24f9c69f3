"""Renames results of `fairseq-generate --results-path` that were cut short."""

import atexit
import logging
from pathlib import Path
from typing import Optional

from omegaconf import DictConfig

from pyramidions.scoring.generate_output import ends_early

logger = logging.getLogger(__name__)


def watch_results(run: Optional[DictConfig]) -> None:
    """Rename the results when the process ends before they are complete, as on a full disk.

    fairseq opens the file first and leaves it as it is, perhaps empty.

    Args:
        run: the config of the whole run; None where there is none.
    """
    folder = run.common_eval.results_path if run is not None and "common_eval" in run else None
    if run is not None and folder:
        atexit.register(set_aside, Path(folder).absolute() / f"generate-{run.dataset.gen_subset}.txt")


def set_aside(path: Path) -> None:
    """Rename results that end early to `.txt.partial`, and say so."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        if not ends_early(lines):
            return
    partial = path.replace(path.with_name(f"{path.name}.partial"))
    logger.error("%s was not written to its end, and is now %s.", path, partial.name)
