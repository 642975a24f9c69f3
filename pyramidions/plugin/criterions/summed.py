"""What our criterions share: they log the sums of a batch, which are added up over workers."""

from collections.abc import Iterator
from typing import Any, ClassVar

from fairseq import utils
from fairseq.criterions import FairseqCriterion

from pyramidions.plugin.hooks import check_options

Logs = list[dict[str, Any]]


class SummedCriterion(FairseqCriterion):
    """A criterion that adds up the logs of several batches or workers."""

    #: Beginnings of the names of metrics that are logged only where a batch has what they count.
    conditional_metrics: ClassVar[tuple[str, ...]] = ()
    #: Metrics that are logged in training alone.
    training_metrics: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def build_criterion(cls, cfg: Any, task: Any) -> Any:
        """Build the criterion, once its options are checked."""
        check_options(cls, cfg)
        return super().build_criterion(cfg, task)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        return True


def total(logging_outputs: Logs, key: str) -> float:
    """Return the sum over all batches of all workers, as a plain float: metrics must load without pickled code."""
    return float(utils.item(sum(log.get(key, 0) for log in logging_outputs)))


def means(logging_outputs: Logs, *prefixes: str) -> Iterator[tuple[str, float, float]]:
    """Yield name, mean and count of what is logged as a sum and a count under names with these prefixes."""
    names = {key.removesuffix("_sum") for log in logging_outputs for key in log if key.startswith(prefixes)}
    for name in sorted(name for name in names if not name.endswith("_count")):
        count = total(logging_outputs, f"{name}_count")
        if count > 0:
            yield name, total(logging_outputs, f"{name}_sum") / count, count
