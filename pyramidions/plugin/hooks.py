"""What fairseq has no call for, and how we get it all the same. fairseq itself is patched nowhere.

Further such places have a module of their own:

- `tasks/checkpoint_folder.py`: fairseq copies its checkpoints in place, so that a kill can ruin the last one.
- `tasks/timely_saves.py`: fairseq saves in mid-epoch after a number of updates only, and validates each time.
- `tasks/learning.py`: fairseq gives all weights one learning rate, and adds no loss of parts of a model.
- `models/architectures.py`: fairseq registers a model's own name as an architecture without settings.
- `__init__.py`: fairseq warns of its own code, and configures the root logger.

The order in which fairseq calls a task of ours in a training (`tasks/training_task.py`), and who acts:

1. `Task(cfg)`: options are checked; a damaged `--path` is refused.
2. `build_model`: `check_run`; `TrainingRun.begin` holds and mends the folder, and finds the `Start`; the model must fit
   the task, the data and the resumed run; it is built, and parts are frozen (`begin_learning`).
3. fairseq loads the checkpoint; `set_checkpoint_dict`: the `StoppingRule` counts on.
4. For each epoch, `get_batch_iterator`: batches hold every example; before the first, a hopeless schedule is told.
5. For each batch, `train_step`: an interrupted run ends; the `ScorerRate` follows the optimizer.
6. For each update, `optimizer_step`, then `TimelySaves.updated`; `reduce_metrics` checks the name of the best metric.
7. For a validation, `valid_step`, `reduce_metrics` and `post_validate`: the `StoppingRule` counts.
8. For a save, `get_checkpoint_dict`: the config is the user's again, and old files move aside. fairseq writes. In
   `post_save` the `CheckpointFolder` verifies what was written, and only then old files go.
9. At exit, a save that failed is mended.
"""

import atexit
import logging
import math
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_MODEL_NAME_REGISTRY
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigKeyError
from torch import Tensor, nn

from pyramidions.base.arguments import check_described, flag_of
from pyramidions.base.errors import UserError
from pyramidions.nn.ngram import block_repeated_ngrams
from pyramidions.scoring.summaries import ends_early

logger = logging.getLogger(__name__)

#: Marks a flag that was not given. fairseq requires numbers, so that None is refused, and fills in its own default for
#: an argument that is missing, so that the default looks like a user's choice. No setting has this value.
NOT_GIVEN = -(2**31)


# The run and its config


def run_of(cfg: Any) -> DictConfig | None:
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


def check_options(kind: type, given: Any) -> None:
    """Check the options of a task or criterion, of which fairseq files the dataclass with the class."""
    check_described(kind.__dataclass, given, flag_of)  # type: ignore[attr-defined]


def model_name(cfg: Any) -> str:
    """Return the name of the model class of a model's config, whatever --arch says."""
    return str(ARCH_MODEL_NAME_REGISTRY.get(cfg._name, cfg._name))


def seed_of(cfg: Any) -> int:
    """Return the --seed of the run whose group `task` is ``cfg``; fairseq's default where there is no run."""
    run = run_of(cfg)
    return 1 if run is None else int(run.common.seed)


def is_first_worker(cfg: Any) -> bool:
    """Whether this process speaks for the run, so that a warning is not printed once for each GPU."""
    run = run_of(cfg)
    return run is None or run.distributed_training.distributed_rank == 0


def end_run(run: DictConfig) -> None:
    """End a run before its next epoch, once the checkpoint of this one is saved.

    fairseq has no call for this. Its loop reads --max-update before it validates, --patience counts validations in
    mid-epoch as well, and an exception would come before the save. The lowest learning rate is what it compares right
    before each epoch, the first after a restart included; its log does not give that as the reason.
    """
    run.optimization.stop_min_lr = math.inf
    logging.getLogger("fairseq_cli.train").addFilter(_is_said)


def _is_said(record: logging.LogRecord) -> bool:
    return "(--stop-min-lr=inf)" not in record.getMessage()


def bf16_without_tpu(args: Any) -> None:
    """Let ``--bf16`` compute on the GPU or CPU, as ``common.bf16=true`` of Hydra does.

    fairseq's command line reads --bf16 as --tpu, which fails without torch_xla. A --tpu on the command line stays, and
    fails there. fairseq asks a model to fill in its settings right after.
    """
    # In what fairseq read, a --tpu that was given looks like one that it set itself.
    if getattr(args, "bf16", False) and find_spec("torch_xla") is None and "--tpu" not in sys.argv:
        args.tpu = False


def show_errors_as_sentences() -> None:
    """Show what a user can mend without a traceback, as our own commands do, where this process is one of fairseq's.

    fairseq raises a bare exception in place of what is wrong with the weights of a checkpoint.
    """
    usual = sys.excepthook

    def show(kind: Any, error: BaseException, trace: Any) -> None:
        found = error.__context__ if type(error) is Exception else error
        if isinstance(found, UserError):
            print(f"Error: {' '.join(str(found).split())}", file=sys.stderr)
        else:
            usual(kind, error, trace)

    if Path(sys.argv[0]).name.startswith("fairseq-"):
        sys.excepthook = show


# Batches

#: Arguments of `get_batch_iterator` with which batches hold every example: all fit the model, so that nothing is left
#: to filter; fairseq's default multiple of 8 would drop the last ones; and an iterator kept from the first epoch would
#: draw otherwise than that of a resumed run which examples of equal length share a batch.
WHOLE_BATCHES = {"max_positions": None, "required_batch_size_multiple": 1, "disable_iterator_cache": True}


def begin_with_fillers(batches: Any, update_freq: Sequence[int]) -> None:
    """Move the empty batch that fills up a worker's share to the start of the last update of an epoch.

    fairseq drops what a worker counted in an update whose last batch is empty, but keeps its gradients.
    """
    ordered = batches.ordered_batches

    def filled(epoch: int, fix_batches_to_gpus: bool, shuffle: bool) -> list[Any]:
        found = list(ordered(epoch, fix_batches_to_gpus, shuffle))
        if found and not len(found[-1]):
            of_update = update_freq[min(epoch, len(update_freq)) - 1]
            found.insert((len(found) - 1) // of_update * of_update, found.pop())
        return found

    batches.ordered_batches = filled


def end_workers_with_their_epoch(batches: Any, dataset: Any) -> None:
    """Have the processes that load ``dataset`` end with the epoch, and not when the run is interrupted.

    Each epoch has a loader of its own. Workers that wait for another one would be ended by the garbage collector,
    which closes their queues before it asks them to stop: each would take five seconds to time out.
    """
    batches.persistent_workers = False
    dataset.worker_init_fn = _leave_group


def _leave_group(_: int) -> None:
    # Whoever interrupts the group of the run means the run alone.
    os.setpgrp()


# Generation


def unset_defaults(parser: ArgumentParser, names: Iterable[str]) -> None:
    """Mark flags of `fairseq-generate` and `fairseq-interactive` as not given unless they are."""
    # A training has none of these flags, and must not get them into its config.
    parser.set_defaults(**{name: NOT_GIVEN for name in names if parser.get_default(name) is not None})


class NGramBlocker(nn.Module):
    """Blocks repeated n-grams behind the interface of fairseq's generator.

    Without its CUDA extension, fairseq's own blocks nothing: it compares with the padding after a hypothesis instead of
    its last tokens.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def forward(self, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int) -> Tensor:
        """Forbid in ``lprobs`` (B, V) each token that would repeat an n-gram of the first ``step`` ``tokens`` (B, T).

        The first token starts the text and does not count: with n = 1, a summary could never end. Where one token alone
        is possible, it is that of a prefix, and stays so.
        """
        is_given = lprobs.isfinite().sum(dim=1, keepdim=True) == 1
        return torch.where(is_given, lprobs, block_repeated_ngrams(lprobs, tokens[:, 1 : step + 1], self.size))


def block_ngrams(generator: Any, size: int) -> None:
    """Let a generator that blocks repeated n-grams do so."""
    if getattr(generator, "repeat_ngram_blocker", None) is not None:
        generator.repeat_ngram_blocker = NGramBlocker(size)


def watch_results(run: DictConfig | None) -> None:
    """Rename the results of `fairseq-generate --results-path` when the process ends before they are complete.

    fairseq opens the file first and leaves it as it is on a full disk, perhaps empty.
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
