"""Cross entropy of the next token, and what boundaries learn from."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from pyramidions.base.arguments import Range, described
from pyramidions.base.errors import UserError
from pyramidions.nn.boundaries import Segmentation
from pyramidions.plugin.criterions.summed import SummedCriterion, total
from pyramidions.text.tokenizer import SPACE

_WRONG_MODEL = "--criterion boundary_cross_entropy is for models of --arch hourglass_... alone."


@dataclass
class BoundaryCrossEntropyConfig(FairseqDataclass):
    """The options of `--criterion boundary_cross_entropy`."""

    boundary_weight: float = described(
        1.0,
        "of what boundaries add to the loss: a prior, or the loss of their predictor",
        Range(0, math.inf, below=True),
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("boundary_cross_entropy", dataclass=BoundaryCrossEntropyConfig)
class BoundaryCrossEntropyCriterion(SummedCriterion):
    """Cross entropy of the next token, with the loss of boundaries in nats a token (Nawrot et al. 2023, section 3).

    It logs ``bpc``, the cross entropy in bits a token; ``boundary_loss``, in bits a token, too; of each shortened part
    ``shortening_factor``, tokens over segments, and ``shortening_of_longest``, that of the rows of a batch with the
    most segments, whose number all rows are padded to (from the second part on with its number, as
    ``shortening_factor_2``); of the outermost ``spaces_f1``, the F1 of boundaries against spaces, and ``targets_f1``,
    that against what supervises them.
    """

    conditional_metrics: ClassVar[tuple[str, ...]] = ("shortening_", "spaces_f1", "targets_f1")

    def __init__(self, task: Any, boundary_weight: float, sentence_avg: bool) -> None:
        super().__init__(task)
        if getattr(task, "model_does", None) != "predicts characters":
            raise UserError(_WRONG_MODEL)
        self.boundary_weight = boundary_weight
        self.sentence_avg = sentence_avg
        self._space: int | None = task.target_dictionary.indices.get(SPACE)

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        tokens, target = sample["net_input"]["src_tokens"], sample["target"]
        logits, extra = model(**sample["net_input"])
        if "segmentations" not in extra:
            raise UserError(_WRONG_MODEL)
        nll = F.cross_entropy(
            logits.float().flatten(0, 1), target.flatten(), ignore_index=self.padding_idx, reduction="sum"
        )
        targets, added = self._of_boundaries(model.core, logits, extra["segmentations"], sample.get("boundaries"))
        loss = nll if added is None else nll + self.boundary_weight * added
        sample_size = target.size(0) if self.sentence_avg else sample["ntokens"]
        log = {
            "loss": loss.data,
            "nll_loss": nll.data,
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": sample_size,
        }
        if added is not None:
            log["boundary_loss"] = added.data
        for number, found in enumerate(extra["segmentations"]):
            log |= _lengths(found, f"_{number + 1}" if number else "")
        if extra["segmentations"]:
            outer = extra["segmentations"][0]
            if self._space is not None:
                log |= _agreement(outer, tokens == self._space, "spaces")
            if targets is not None:
                log |= _agreement(outer, targets, "targets")
        return loss, sample_size, log

    def _of_boundaries(
        self, core: Any, logits: Tensor, segmentations: tuple[Segmentation, ...], marked: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return where boundaries should be, (B, L) or None, and the sum of their losses, or None."""
        targets = core.boundary_targets(logits.detach(), marked)
        if targets is None and core.is_supervised:
            raise UserError(
                "`boundaries` unigram learns from the ends of pieces: prepare the data with `pyramidions prepare "
                "--characters --pieces`, and train with --piece-boundaries."
            )
        added = core.boundary_loss(segmentations, targets)
        return targets, None if added is None else added.sum()

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        sum_of = partial(total, logging_outputs)
        sample_size, tokens = sum_of("sample_size"), sum_of("ntokens")
        keys = {key for log in logging_outputs for key in log}
        metrics.log_scalar("loss", sum_of("loss") / sample_size / math.log(2), sample_size, round=3)
        metrics.log_scalar("bpc", sum_of("nll_loss") / tokens / math.log(2), tokens, round=4)
        if "boundary_loss" in keys:
            metrics.log_scalar("boundary_loss", sum_of("boundary_loss") / tokens / math.log(2), tokens, round=4)
        for key in sorted(key for key in keys if key.startswith("positions")):
            number = key.removeprefix("positions")
            for name, long, short in (
                ("shortening_factor", key, f"segments{number}"),
                ("shortening_of_longest", f"room{number}", f"slots{number}"),
            ):
                # Texts without any boundary have no such factor.
                if sum_of(short):
                    metrics.log_scalar(f"{name}{number}", sum_of(long) / sum_of(short), sum_of(short), round=3)
        for name in ("spaces", "targets"):
            if sum_of(f"{name}_either"):
                f1 = 2 * sum_of(f"{name}_both") / sum_of(f"{name}_either")
                metrics.log_scalar(f"{name}_f1", f1, sum_of(f"{name}_either"), round=4)


def _lengths(found: Segmentation, number: str) -> dict[str, Any]:
    """Return real positions and segments, and the same of batches in which all rows are as long as the longest."""
    batch, length = found.boundaries.shape
    return {
        f"positions{number}": found.lengths.sum(),
        f"segments{number}": found.closed.sum(),
        f"room{number}": batch * length,
        # With the null group.
        f"slots{number}": batch * (found.closed.max() + 1),
    }


def _agreement(found: Segmentation, wanted: Tensor, name: str) -> dict[str, Any]:
    """Return how many boundaries there are both in ``found`` and where ``wanted`` (B, L), and in the one or other."""
    wanted = wanted.bool() if found.padding_mask is None else wanted.bool() & ~found.padding_mask
    boundaries = found.boundaries.detach() != 0
    return {f"{name}_both": (boundaries & wanted).sum(), f"{name}_either": boundaries.sum() + wanted.sum()}
