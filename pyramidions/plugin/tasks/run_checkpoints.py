"""Keeps a run's checkpoints intact, and ends a run that is finished."""

import logging
import math
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from fairseq.checkpoint_utils import checkpoint_paths, save_checkpoint
from fairseq.models import ARCH_CONFIG_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.utils import split_paths
from omegaconf import DictConfig, OmegaConf
from torch import distributed, nn

from pyramidions.base.errors import UserError
from pyramidions.files.archive import is_damaged
from pyramidions.files.run_facts import RunFacts, start_of
from pyramidions.models.config import part_fields
from pyramidions.models.freezing import parameters_of
from pyramidions.models.older_fields import ENDING, translate
from pyramidions.models.older_releases import FORMAT, UNRECORDED
from pyramidions.models.same_parts import changed_part
from pyramidions.plugin.hooks import end_run, model_name
from pyramidions.plugin.tasks.checkpoint_folder import LAST, CheckpointFolder

logger = logging.getLogger(__name__)


def check_given(run: Optional[DictConfig]) -> None:
    """Refuse a damaged file in `--path`, before fairseq reads it.

    Raises:
        UserError: it is damaged.
    """
    paths = run.common_eval.path if run is not None and "common_eval" in run else None
    for path in split_paths(paths or ""):
        _require_whole(Path(path), "--path")


class RunCheckpoints:
    """Prepares and verifies the checkpoints of a run at fairseq's hooks; ends a finished run at once.

    Args:
        run: the config of the whole run.
    """

    def __init__(self, run: DictConfig) -> None:
        self.run = run
        self.folder = CheckpointFolder(Path(run.checkpoint.save_dir).absolute(), not run.checkpoint.no_last_checkpoints)
        self._score: Optional[float] = None
        #: whether the run begins with the weights of another
        self.fine_tunes = False
        # what the run resumes, its optimizer included
        self._resumed: Optional[RunFacts] = None
        #: the pretrained model that the run started from, as its first checkpoint says
        self.source: Optional[dict[str, str]] = None
        # the checkpoint whose weights the run begins with, and the config of its model
        self._start: Optional[Path] = None
        self._started: Mapping[str, Any] = {}

    def begin(self) -> None:
        """Mend what an interrupted run left, before fairseq reads it; end the run if nothing is left to do.

        Raises:
            UserError: a checkpoint that the user names is damaged, or is to be written in the background; or another
                run writes to the same folder.
        """
        if self.run.checkpoint.write_checkpoints_asynchronously:
            raise UserError(
                "--write-checkpoints-asynchronously must not be given: what is written in the background cannot be "
                "verified before older checkpoints are deleted."
            )
        together = distributed.is_available() and distributed.is_initialized()
        try:
            # A run that writes nothing leaves the folder to one that does.
            if self.run.distributed_training.distributed_rank == 0 and not self.run.checkpoint.no_save:
                self.folder.hold()
                if self.folder.mend():
                    self._delete_old()
        finally:
            if together:
                distributed.barrier()
        checkpoint = self.run.checkpoint
        last = self.folder.path / LAST
        resumes = checkpoint.restore_file != LAST or last.exists()
        self.fine_tunes = bool(checkpoint.finetune_from_model) and not resumes
        starts = [Path(checkpoint.restore_file) if checkpoint.restore_file != LAST else last]
        starts += [Path(checkpoint.finetune_from_model)] if checkpoint.finetune_from_model else []
        self._start = next((path for path in starts if path.is_file()), None)
        if self._start is not None:
            self.source, self._started = start_of(self._start)
        if checkpoint.restore_file != LAST:
            _require_whole(Path(checkpoint.restore_file), "--restore-file")
            self._resume(Path(checkpoint.restore_file))
        elif last.exists():
            if checkpoint.no_save:
                _require_whole(last, "--restore-file")
            self._resume(last)
        elif self.fine_tunes:
            _require_whole(Path(checkpoint.finetune_from_model), "--finetune-from-model")

    def _delete_old(self) -> None:
        """Delete the checkpoints that an interrupted save did not get to, by fairseq's rules.

        A run with nothing left to train would never save again.
        """
        checkpoint, folder = self.run.checkpoint, str(self.folder.path)
        # The newest come first.
        of_epochs = checkpoint_paths(folder, r"checkpoint(\d+)\.pt")
        numbered = checkpoint_paths(folder, r"checkpoint_\d+_(\d+)\.pt", keep_match=True)
        every = checkpoint.keep_interval_updates_pattern
        of_updates = [path for path, update in numbered if every == -1 or update % every]
        best = checkpoint_paths(folder, rf"checkpoint\.best_{checkpoint.best_checkpoint_metric}_(\d+\.?\d*)\.pt")
        if not checkpoint.maximize_best_checkpoint_metric:
            best.reverse()
        for found, most in (
            (of_epochs, checkpoint.keep_last_epochs),
            (of_updates, checkpoint.keep_interval_updates),
            (best, checkpoint.keep_best_checkpoints),
        ):
            for old in found[most:] if most > 0 else ():
                Path(old).unlink()
                logger.info("Deleted %s, which an interrupted save had left.", old)

    def _resume(self, path: Path) -> None:
        facts = RunFacts.of(path) if path.is_file() and not self.run.checkpoint.reset_optimizer else None
        self._resumed = facts
        if facts is None:
            return
        updates, hours = self.run.optimization.max_update or math.inf, self.run.optimization.stop_time_hours or math.inf
        if facts.updates >= updates:
            reason = f"it has {facts.updates} updates (--max-update {updates})"
        elif facts.seconds > 3600 * hours:
            reason = f"it took {facts.seconds / 3600:.2f} hours (--stop-time-hours {hours:g})"
        else:
            return
        logger.info("The run of %s is finished, %s: nothing is trained or written.", path, reason)
        end_run(self.run)

    def check_frozen(self, model: nn.Module) -> None:
        """Compare the parts that do not learn with those of the run that is resumed.

        An optimizer's state goes by the place of a parameter among those that learn.

        Raises:
            UserError: they are others.
        """
        if self._resumed is None:
            return
        before, now = self._resumed.frozen, getattr(self.run.task, "freeze", None)
        if before != now and _weights(model, before) != _weights(model, now):
            raise UserError(
                f"--freeze must stay what the resumed run began with ({before or 'nothing'}), but is "
                f"{now or 'nothing'}; --reset-optimizer allows another."
            )

    def settle_format(self, model: Any) -> None:
        """Record in a model's config what its options mean: what they did for the weights that the run begins with.

        Weights that are not of a model of ours, and no weights, leave today's meaning. What the user said stays.
        """
        if "config_format" not in model:
            return
        known = FORMAT
        if self._started and model_name(OmegaConf.create(self._started)) == model_name(model):
            known = self._started.get("config_format") or UNRECORDED
        if model.config_format is None:
            model.config_format = known
            if known < FORMAT:
                self._keep_preset(model)
        if (model.config_format, known) != (FORMAT, FORMAT):
            logger.info(
                "Options of parts mean what they did in format %d (--config-format); %s was written with %d.",
                model.config_format,
                self._start or "a new run",
                known,
            )

    def _keep_preset(self, model: Any) -> None:
        """Take from the checkpoint what a preset of today says otherwise; what the user said stays."""
        today = Namespace()
        ARCH_CONFIG_REGISTRY[model._name](today)
        parts = part_fields(MODEL_DATACLASS_REGISTRY[model_name(model)])
        started = translate(self._started, parts, warn=False)
        for name in {**vars(today), **parts}:
            if name not in started or name not in model or model[name] == started[name]:
                continue
            is_presets = name in today and model[name] == vars(today)[name]
            # In 0.2 a kind without options had those of the preset.
            is_bare = name in parts and "(" not in str(model[name]) and model.get(f"{name}{ENDING}") is None
            if is_presets or (is_bare and changed_part({name: started[name]}, model) is None):
                logger.info("%s is %r, as in %s, and not %r.", name, started[name], self._start, model[name])
                model[name] = started[name]

    def check_parts(self, model: Any) -> None:
        """Compare the kinds of parts of a model's config with those of the run that is resumed.

        Weights of one kind may fit another, and nobody would notice.

        Raises:
            UserError: they are others.
        """
        if self._resumed is None:
            return
        name = changed_part(self._resumed.model, model)
        if name is not None:
            raise UserError(
                f"`{name}` must stay what the resumed run began with ({self._resumed.model[name]}), but is "
                f"{getattr(model, name)}: give another --save-dir, or start from its weights with "
                "--finetune-from-model."
            )

    def validated(self, score: float) -> None:
        """Take note of the score by which the next checkpoint may be the best one."""
        self._score = score

    def trains(self) -> None:
        """Take note that training goes on: the last save is over, and the last score belongs to an older model."""
        self._score = None
        self.folder.nothing_saved()

    def before_saving(self) -> None:
        """Move aside what fairseq is about to overwrite."""
        replaces_best = self._score is not None and self._score == getattr(save_checkpoint, "best", None)
        self.folder.before_saving(replaces_best)

    def saved(self, first: str) -> None:
        """Verify what fairseq has written: ``first``, and its copies."""
        self.folder.saved(Path(first))


def _weights(model: nn.Module, parts: Optional[str]) -> set[nn.Parameter]:
    return set() if parts is None else parameters_of(model, parts)


def _require_whole(path: Path, flag: str) -> None:
    if path.is_file() and is_damaged(path):
        raise UserError(f"The checkpoint {path} ({flag}) is damaged or no checkpoint.")
