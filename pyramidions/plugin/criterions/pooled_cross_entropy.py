"""Cross entropy that also logs how selective each pooler is."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from fairseq import utils
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from pyramidions.base.arguments import Range, described
from pyramidions.nn.pooling import Pooled
from pyramidions.plugin.criterions.collapse import SPREAD
from pyramidions.plugin.criterions.summed import SummedCriterion, means, total


@dataclass
class PooledCrossEntropyConfig(FairseqDataclass):
    """The options of `--criterion pooled_cross_entropy`."""

    label_smoothing: float = described(0.0, "probability mass spread over all tokens", Range(0, 1, below=True))
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("pooled_cross_entropy", dataclass=PooledCrossEntropyConfig)
class PooledCrossEntropyCriterion(SummedCriterion):
    """Cross entropy with label smoothing (Szegedy et al. 2016), as fairseq's ``label_smoothed_cross_entropy``.

    It also logs ``sharpness_N`` for each encoder layer N (from 1) that pools: the largest weight within a pooled
    vector, averaged over the vectors of two members or more. 1 is hard selection; equal scores give 1/G for G members.
    ``spread_N`` is how far apart the best and the worst score of a document are, on average over documents.
    """

    conditional_metrics: ClassVar[tuple[str, ...]] = ("sharpness_", SPREAD)

    def __init__(self, task: Any, sentence_avg: bool, label_smoothing: float) -> None:
        super().__init__(task)
        self.sentence_avg = sentence_avg
        self.label_smoothing = label_smoothing

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Any, Any, dict[str, Any]]:
        net_output = model(**sample["net_input"])
        log_probs = model.get_normalized_probs(net_output, log_probs=True)
        target = model.get_targets(sample, net_output)
        loss, nll_loss = self._losses(log_probs.flatten(0, 1), target.flatten(), reduce)
        sample_size = target.size(0) if self.sentence_avg else sample["ntokens"]
        logging_output = {
            "loss": loss.data,
            "nll_loss": nll_loss.data,
            "ntokens": sample["ntokens"],
            "nsentences": target.size(0),
            "sample_size": sample_size,
        }
        for layer, pooled in (net_output[1].get("pooled") or {}).items():
            logging_output.update(_sharpness(f"sharpness_{layer + 1}", pooled))
            logging_output.update(_spread(f"{SPREAD}{layer + 1}", pooled))
        return loss, sample_size, logging_output

    def _losses(self, log_probs: Tensor, target: Tensor, reduce: bool) -> tuple[Tensor, Tensor]:
        """Return the loss and its cross-entropy part: (BT, V), (BT,) -> (), or (BT, 1) without ``reduce``."""
        if self.label_smoothing:
            loss, nll_loss = label_smoothed_nll_loss(
                log_probs, target, self.label_smoothing, ignore_index=self.padding_idx, reduce=reduce
            )
            return loss, nll_loss
        # Without smoothing only the target's probability is needed: no sums over the vocabulary.
        target = target[:, None]
        nll_loss = -log_probs.gather(-1, target).masked_fill(target.eq(self.padding_idx), 0.0)
        nll_loss = nll_loss.sum() if reduce else nll_loss
        return nll_loss, nll_loss

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        sum_of = partial(total, logging_outputs)
        sample_size, tokens = sum_of("sample_size"), sum_of("ntokens")
        metrics.log_scalar("loss", sum_of("loss") / sample_size / math.log(2), sample_size, round=3)
        metrics.log_scalar("nll_loss", sum_of("nll_loss") / tokens / math.log(2), tokens, round=3)
        metrics.log_derived("ppl", _perplexity)
        for name, mean, count in means(logging_outputs, "sharpness_", SPREAD):
            metrics.log_scalar(name, mean, count, round=3)


def _perplexity(meters: Any) -> float:
    return float(utils.get_perplexity(meters["nll_loss"].avg))


def _sharpness(name: str, pooled: Pooled) -> dict[str, Any]:
    """Return the sum of the largest weights of vectors with several members, and the number of such vectors."""
    sharpness = pooled.sharpness()
    if sharpness is None:
        return {}
    largest, counted = sharpness
    return {f"{name}_sum": (largest.float() * counted).sum().data, f"{name}_count": counted.sum()}


def _spread(name: str, pooled: Pooled) -> dict[str, Any]:
    """Return the sum of the spreads of documents' scores, and the number of documents that have one."""
    if pooled.spread is None:
        return {}
    return {f"{name}_sum": pooled.spread.nansum(), f"{name}_count": (~pooled.spread.isnan()).sum()}
