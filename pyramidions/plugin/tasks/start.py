"""The checkpoint that a run begins with, and what the run keeps of it."""

import logging
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Optional

from fairseq.models import ARCH_CONFIG_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.utils import split_paths
from omegaconf import DictConfig, OmegaConf
from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.files.archive import is_damaged
from pyramidions.files.run_facts import RunFacts, start_of
from pyramidions.models.declared import part_fields
from pyramidions.models.freezing import parameters_of
from pyramidions.models.older_fields import ENDING, translate
from pyramidions.models.older_releases import FORMAT, UNRECORDED
from pyramidions.models.same_parts import changed_part
from pyramidions.plugin.hooks import model_name
from pyramidions.plugin.tasks.checkpoint_folder import LAST

logger = logging.getLogger(__name__)


def check_given(run: Optional[DictConfig]) -> None:
    """Refuse a damaged file in `--path`, before fairseq reads it.

    Raises:
        UserError: it is damaged.
    """
    paths = run.common_eval.path if run is not None and "common_eval" in run else None
    for path in split_paths(paths or ""):
        _require_whole(Path(path), "--path")


class Start:
    """What a run begins with: the last checkpoint of its folder, another one, or nothing.

    Args:
        run: the config of the whole run, whose folder holds whole checkpoints.

    Attributes:
        path: the checkpoint whose weights the run begins with; None if there is none.
        fine_tunes: whether these are the weights of another run.
        resumed: what the run goes on from, its optimizer included; None for a new run.
        source: the pretrained model that training started from, as the checkpoint says.

    Raises:
        UserError: the checkpoint is damaged.
    """

    def __init__(self, run: DictConfig) -> None:
        checkpoint = run.checkpoint
        last, tunes = Path(checkpoint.save_dir).absolute() / LAST, checkpoint.finetune_from_model
        is_named = checkpoint.restore_file != LAST
        resumes = Path(checkpoint.restore_file) if is_named else last
        self.fine_tunes = bool(tunes) and not is_named and not last.exists()
        if self.fine_tunes:
            _require_whole(Path(tunes), "--finetune-from-model")
        elif is_named or checkpoint.no_save:
            # What the run writes itself has been mended.
            _require_whole(resumes, "--restore-file")
        self.path = next((path for path in (resumes, *([Path(tunes)] if tunes else [])) if path.is_file()), None)
        self.source: Optional[dict[str, str]] = None
        self._config: Mapping[str, Any] = {}
        if self.path is not None:
            self.source, self._config = start_of(self.path)
        goes_on = resumes.is_file() and not checkpoint.reset_optimizer
        self.resumed = RunFacts.of(resumes) if goes_on else None
        self._freeze = getattr(run.task, "freeze", None)

    def check_frozen(self, model: nn.Module) -> None:
        """Compare the parts that do not learn with those of the run that is resumed.

        An optimizer's state goes by the place of a parameter among those that learn.

        Raises:
            UserError: they are others.
        """
        if self.resumed is None:
            return
        before, now = self.resumed.frozen, self._freeze
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
        if self._config and model_name(OmegaConf.create(self._config)) == model_name(model):
            known = self._config.get("config_format") or UNRECORDED
        if model.config_format is None:
            model.config_format = known
            if known < FORMAT:
                self._keep_preset(model)
        if (model.config_format, known) != (FORMAT, FORMAT):
            logger.info(
                "Options of parts mean what they did in format %d (--config-format); %s was written with %d.",
                model.config_format,
                self.path or "a new run",
                known,
            )

    def _keep_preset(self, model: Any) -> None:
        """Take from the checkpoint what today's preset has changed; the user's own choices stay."""
        today = Namespace()
        ARCH_CONFIG_REGISTRY[model._name](today)
        parts = part_fields(MODEL_DATACLASS_REGISTRY[model_name(model)])
        started = translate(self._config, parts, warn=False)
        for name in {**vars(today), **parts}:
            if name not in started or name not in model or model[name] == started[name]:
                continue
            is_presets = name in today and model[name] == vars(today)[name]
            # In 0.2 a kind without options had those of the preset.
            is_bare = name in parts and "(" not in str(model[name]) and model.get(f"{name}{ENDING}") is None
            if is_presets or (is_bare and changed_part({name: started[name]}, model) is None):
                logger.info("%s is %r, as in %s, and not %r.", name, started[name], self.path, model[name])
                model[name] = started[name]

    def check_parts(self, model: Any) -> None:
        """Compare the kinds of parts of a model's config with those of the run that is resumed.

        Weights of one kind may fit another, and nobody would notice.

        Raises:
            UserError: they are others.
        """
        if self.resumed is not None and (name := changed_part(self.resumed.model, model)) is not None:
            raise UserError(
                f"`{name}` must stay what the resumed run began with ({self.resumed.model[name]}), but is "
                f"{getattr(model, name)}: give another --save-dir, or start from its weights with "
                "--finetune-from-model."
            )


def _weights(model: nn.Module, parts: Optional[str]) -> set[nn.Parameter]:
    return set() if parts is None else parameters_of(model, parts)


def _require_whole(path: Path, flag: str) -> None:
    if path.is_file() and is_damaged(path):
        raise UserError(f"The checkpoint {path} ({flag}) is damaged or no checkpoint.")
