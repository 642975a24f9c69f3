"""When a run warms up, validates and ends, and mistakes in its settings that fairseq reports late or never."""

import logging
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Optional, cast

import torch
from omegaconf import DictConfig
from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.files.progress import counted
from pyramidions.nn import Encoder
from pyramidions.nn.pooling import Pooler
from pyramidions.plugin.hooks import is_first_worker, run_of

logger = logging.getLogger(__name__)

#: A warm-up of more epochs is warned of; the paper's 5,000 updates are 6 epochs of arXiv and 11 of PubMed.
MOST_WARMUP_EPOCHS = 20


def check_run(run: DictConfig, stopping_patience: int) -> None:
    """Check how a run is to end and to begin."""
    checkpoint, dataset = run.checkpoint, run.dataset
    if dataset.train_subset in dataset.valid_subset.split(",") and not dataset.disable_validation:
        raise UserError(
            f"--valid-subset must name other splits than --train-subset {dataset.train_subset}, but is "
            f"{dataset.valid_subset}. `fairseq-validate` reports the loss on {dataset.train_subset}."
        )
    if run.common.fp16 and (run.common.cpu or not torch.cuda.is_available()):
        raise UserError("--fp16 needs a GPU: on a CPU, --bf16 computes in 16 bits, and --amp in float32.")
    if stopping_patience and dataset.disable_validation:
        raise UserError("--stopping-patience counts validations, but --disable-validation is given.")
    if checkpoint.patience > 0:
        logger.warning(
            "--patience %d counts validations in mid-epoch, too, and from zero when a run restarts; "
            "--stopping-patience does neither.",
            checkpoint.patience,
        )
    if checkpoint.finetune_from_model and (Path(checkpoint.save_dir) / "checkpoint_last.pt").exists():
        logger.warning(
            "--finetune-from-model %s is ignored: %s holds checkpoint_last.pt, and the run goes on from there.",
            checkpoint.finetune_from_model,
            checkpoint.save_dir,
        )


class Milestones(NamedTuple):
    """When a run warms up, validates and ends, in updates."""

    epoch_updates: int  # updates an epoch
    warmup: int  # updates until the learning rate is at its peak; 0 without a warm-up
    max_update: Optional[int]  # the last update; None where neither --max-update nor --max-epoch sets one
    validate_interval: int  # epochs from one validation to the next
    patience: int  # validations at epoch ends without progress after which the run ends; 0 never ends it
    # The first update after which there is a validation; None where validation is disabled.
    first_validation: Optional[int]
    pooling_warmup: int = 0  # updates until the model pools to its configured lengths; 0 where it always does


def schedule_of(cfg: Any, batches: int) -> Optional[Milestones]:
    """Return the schedule of the run that the task of ``cfg`` belongs to; None where there is no run."""
    run = run_of(cfg)
    if run is None:
        return None
    optimization, dataset, checkpoint = run.optimization, run.dataset, run.checkpoint
    accumulated = optimization.update_freq[-1]
    epoch_updates = max(1, batches // accumulated if optimization.skip_remainder_batch else -(-batches // accumulated))
    ends = [optimization.max_update, (optimization.max_epoch or 0) * epoch_updates]
    # fairseq validates at the ends of epochs, every so many updates, with each save in mid-epoch, and at --max-update.
    validations = [
        dataset.validate_interval * epoch_updates,
        dataset.validate_interval_updates,
        checkpoint.save_interval_updates,
        optimization.max_update,
    ]
    return Milestones(
        epoch_updates,
        int(getattr(run.lr_scheduler, "warmup_updates", 0) or 0),
        min((end for end in ends if end > 0), default=None),
        dataset.validate_interval,
        cfg.stopping_patience,
        None
        if dataset.disable_validation
        else max(min(n for n in validations if n > 0), dataset.validate_after_updates),
        cfg.pooling_warmup,
    )


def doubts(schedule: Milestones) -> list[str]:
    """Return a sentence for each reason why a run cannot learn, or cannot find its best checkpoint."""
    found = []
    an_epoch, warmup, end = schedule.epoch_updates, schedule.warmup, schedule.max_update
    epochs = -(-warmup // an_epoch)
    rate = f"{counted(an_epoch, 'update')} an epoch and a warm-up of {warmup:,}"
    if end is not None and end < warmup:
        found.append(
            f"{rate}: the run ends after {counted(end, 'update')}, before the learning rate reaches its peak; "
            f"it gets to {100 * end / warmup:.3g}% of --lr."
        )
    elif epochs > MOST_WARMUP_EPOCHS:
        found.append(f"{rate}: the learning rate reaches its peak only after {epochs:,} epochs.")
    if end is not None and end <= schedule.pooling_warmup:
        found.append(
            f"The run ends after {counted(end, 'update')}, within the --pooling-warmup of {schedule.pooling_warmup:,}: "
            "the model never trains with the poolings that it validates and writes with."
        )
    waits = schedule.patience * schedule.validate_interval * an_epoch
    if schedule.first_validation is not None and 0 < waits < warmup:
        found.append(
            f"--stopping-patience {schedule.patience} with --validate-interval {schedule.validate_interval} may end "
            f"the run after {counted(waits, 'update')} without progress, within the warm-up of {warmup:,}."
        )
    if schedule.first_validation is not None and end is not None and schedule.first_validation > end:
        found.append(
            f"The run ends after {counted(end, 'update')}, but the first validation is due after "
            f"{schedule.first_validation:,}: the validation set is never used, and no best checkpoint is written."
        )
    return found


def warn_of_schedule(cfg: Any, batches: int) -> None:
    """Warn, before the first update, of a schedule with which the run cannot learn."""
    schedule = schedule_of(cfg, batches)
    if schedule is None or not is_first_worker(cfg):
        return
    found = doubts(schedule)
    for doubt in found:
        logger.warning(doubt)
    if found:
        logger.warning("`pyramidions train DOCUMENTS -o MODEL --kind KIND --dry-run` prints a schedule that fits.")


def warn_of_poolings(model: nn.Module, longest: int) -> None:
    """Warn, before the first update, of poolings that hand on all vectors even of the longest documents."""
    length: int | None = longest
    poolers = [each.poolers.items() for each in model.modules() if isinstance(each, Encoder)]
    for layer, pooler in chain.from_iterable(poolers):
        kept = None if length is None else cast(Pooler, pooler).kept(length)
        if kept is not None and kept == length:
            logger.warning(
                "The pooling behind layer %d never pools: of documents of --max-source-positions %d, at most %d "
                "vectors reach it, and it hands on all.",
                int(layer) + 1,
                longest,
                length,
            )
        length = kept
