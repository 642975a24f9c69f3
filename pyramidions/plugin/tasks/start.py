"""The checkpoint that a run begins with, and what the run keeps of it."""

from pathlib import Path
from typing import Any, Optional

from fairseq.utils import split_paths
from omegaconf import DictConfig
from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.files.archive import is_damaged
from pyramidions.files.run_facts import RunFacts, start_of
from pyramidions.models.fitting import changed_part
from pyramidions.models.formats import refuse_older_checkpoint
from pyramidions.models.training import parameters_of
from pyramidions.plugin.tasks.checkpoint_folder import LAST


def check_given(run: Optional[DictConfig]) -> None:
    """Refuse a folder or a damaged file in `--path`, before fairseq reads it."""
    paths = run.common_eval.path if run is not None and "common_eval" in run else None
    for path in filter(None, split_paths(paths or "")):
        if Path(path).is_dir():
            raise UserError(f"--path must be a checkpoint, but {path} is a folder: give checkpoint_best.pt in it.")
        _require_whole(Path(path), "--path")


class Start:
    """What a run begins with: the last checkpoint of its folder, another one, or nothing.

    Attributes:
        path: the checkpoint whose weights the run begins with; None if there is none.
        fine_tunes: whether these are the weights of another run.
        resumed: what the run goes on from, its optimizer included; None for a new run.
        source: the pretrained model that training started from, as the checkpoint says.
    """

    def __init__(self, run: DictConfig) -> None:
        checkpoint = run.checkpoint
        last, tunes = Path(checkpoint.save_dir).absolute() / LAST, checkpoint.finetune_from_model
        is_named = checkpoint.restore_file != LAST
        resumes = Path(checkpoint.restore_file) if is_named else last
        self.fine_tunes = bool(tunes) and not is_named and not last.exists()
        if self.fine_tunes:
            _require_whole(Path(tunes), "--finetune-from-model", must_exist=True)
        elif is_named or checkpoint.no_save:
            # What the run writes itself has been mended.
            _require_whole(resumes, "--restore-file", must_exist=is_named)
        self.path = next((path for path in (resumes, *([Path(tunes)] if tunes else [])) if path.is_file()), None)
        self.source: Optional[dict[str, str]] = None
        if self.path is not None:
            self.source, config = start_of(self.path)
            refuse_older_checkpoint(self.path, config)
        goes_on = resumes.is_file() and not checkpoint.reset_optimizer
        self.resumed = RunFacts.of(resumes) if goes_on else None
        began, now = self.resumed and self.resumed.scheduler, run.lr_scheduler._name
        if began and now != began and not checkpoint.reset_lr_scheduler:
            raise UserError(
                f"--lr-scheduler must stay what the resumed run began with ({began}), but is {now}; "
                "--reset-lr-scheduler allows another."
            )
        self._freeze = getattr(run.task, "freeze", None)

    def check_frozen(self, model: nn.Module) -> None:
        """Compare the parts that do not learn with those of the run that is resumed.

        An optimizer's state goes by the place of a parameter among those that learn.
        """
        if self.resumed is None:
            return
        before, now = self.resumed.frozen, self._freeze
        if before != now and _weights(model, before) != _weights(model, now):
            raise UserError(
                f"--freeze must stay what the resumed run began with ({before or 'nothing'}), but is "
                f"{now or 'nothing'}; --reset-optimizer allows another."
            )

    def check_order(self, model: nn.Module) -> None:
        """Compare the order of a model's weights with that of the run that is resumed.

        An optimizer's state goes by the place of a parameter among all.
        """
        if self.resumed is None:
            return
        own = [name for name, _ in model.named_parameters(remove_duplicate=False)]
        known = {*own}
        before = [name for name in self.resumed.weights if name in known]
        # What lacks weights is of another architecture, and fairseq's loading says so.
        if len(before) == len(own) and before != own:
            raise UserError(
                f"The weights of {self.path} must stand in the order of the model to resume its run, but do not: "
                "--reset-optimizer goes on with the weights alone."
            )

    def check_parts(self, model: Any) -> None:
        """Compare the kinds of parts of a model's config with those of the run that is resumed.

        Weights of one kind may fit another, and nobody would notice.
        """
        if self.resumed is not None and (name := changed_part(self.resumed.model, model)) is not None:
            raise UserError(
                f"`{name}` must stay what the resumed run began with ({self.resumed.model[name]}), but is "
                f"{getattr(model, name)}: give another --save-dir, or start from its weights with "
                "--finetune-from-model."
            )


def _weights(model: nn.Module, parts: Optional[str]) -> set[nn.Parameter]:
    return set() if parts is None else parameters_of(model, parts)


def _require_whole(path: Path, flag: str, must_exist: bool = False) -> None:
    if must_exist and not path.is_file():
        raise UserError(f"{flag} must be a checkpoint, but {path} is no file.")
    if path.is_file() and is_damaged(path):
        raise UserError(f"The checkpoint {path} ({flag}) is damaged or no checkpoint.")
