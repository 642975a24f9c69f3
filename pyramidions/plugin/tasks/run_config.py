"""The config of the whole run, of which fairseq hands its task only a part."""

import math
from typing import Any, Optional

from fairseq.models import ARCH_MODEL_NAME_REGISTRY
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError


def run_of(cfg: Any) -> Optional[DictConfig]:
    """Return the config of the run whose group `task` is ``cfg``; None where there is no run.

    fairseq passes nothing else to a task, and interpolations such as ``II("checkpoint.save_dir")`` would make a flag
    of each value that is read and could set none.
    """
    try:
        run = OmegaConf.select(cfg, "..") if isinstance(cfg, DictConfig) else None
    except ConfigKeyError:
        # The config stands alone, as when fairseq reads it from a checkpoint.
        return None
    return run if isinstance(run, DictConfig) and "checkpoint" in run else None


def model_name(cfg: Any) -> str:
    """Return the name of the model class of a model's config, whatever --arch says."""
    return str(ARCH_MODEL_NAME_REGISTRY.get(cfg._name, cfg._name))


def is_first_worker(cfg: Any) -> bool:
    """Whether this process speaks for the run, so that a warning is not printed once for each GPU."""
    run = run_of(cfg)
    return run is None or run.distributed_training.distributed_rank == 0


def end_run(run: DictConfig) -> None:
    """End a run before its next epoch, once the checkpoint of this one is saved.

    fairseq has no call for this. Its loop reads --max-update before it validates, --patience counts validations in
    mid-epoch as well, and an exception would come before the save. The lowest learning rate is what it compares right
    before each epoch, the first after a restart included; its log says so.
    """
    run.optimization.stop_min_lr = math.inf
