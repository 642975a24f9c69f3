"""Adds the own losses of a model's parts to the loss of any criterion, and logs them."""

from typing import Any

from fairseq import utils
from fairseq.logging import metrics

from pyramidions.nn.regularised import regulariser_of

_NAME = "regulariser"


class WithRegulariser:
    """A criterion whose loss includes those of the model's parts; it is for training steps alone.

    Gradients are divided by what the criterion counts, tokens or documents. The parts' losses are multiplied by it
    before, so that each token or document bears them once.

    Args:
        criterion: of fairseq.
    """

    def __init__(self, criterion: Any) -> None:
        self.criterion = criterion

    def __call__(self, model: Any, sample: Any) -> tuple[Any, Any, dict[str, Any]]:
        """Return the loss of a batch, what to divide it by, and what to log."""
        loss, sample_size, logging_output = self.criterion(model, sample)
        own = regulariser_of(model)
        if own is None:
            return loss, sample_size, logging_output
        own = own * sample_size
        return loss + own, sample_size, {**logging_output, _NAME: own.data}


def log_regulariser(logging_outputs: list[dict[str, Any]]) -> None:
    """Log the mean of the parts' losses over all that the criterion counted, if there are any."""
    found = [log for log in logging_outputs if _NAME in log]
    # Plain floats: the metrics in a checkpoint must load without pickled code.
    own, counted = (float(utils.item(sum(log[key] for log in found))) for key in (_NAME, "sample_size"))
    if counted > 0:
        metrics.log_scalar(_NAME, own / counted, counted, round=4)
