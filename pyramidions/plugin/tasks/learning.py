"""What learns, and at which rate: frozen parts, scorers, poolings that tighten, and losses of parts."""

import logging
from typing import Any, Optional

import torch
from fairseq.logging import metrics
from torch import Tensor, nn

from pyramidions.base.errors import UserError
from pyramidions.models.training import PoolingWarmup, freeze
from pyramidions.nn.regularised import regulariser_of
from pyramidions.nn.scorer import Scorer
from pyramidions.plugin.criterions.summed import total
from pyramidions.plugin.tasks.config import DocumentTaskConfig

logger = logging.getLogger(__name__)
_NAME = "regulariser"


class ScorerRate:
    """Multiplies every step that an optimizer takes with the weights of scorers.

    fairseq's schedulers give all weights one learning rate, and its composite optimizer, which has groups, wants an
    optimizer and a scheduler for each, in a file. The step of Adam and its like is proportional to the rate: a
    multiple of the step, weight decay included, is the step at that multiple of the rate. The optimizer's own state
    and checkpoints are as ever, so that a run resumes exactly, and may resume with another multiple.
    """

    def __init__(self, model: nn.Module, scale: float) -> None:
        self._scale = scale
        self._trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        scorers = (module for module in model.modules() if isinstance(module, Scorer))
        of_scorers = {parameter for scorer in scorers for parameter in scorer.parameters()}
        self._places = [place for place, parameter in enumerate(self._trained) if parameter in of_scorers]
        if not self._places:
            raise UserError(f"--scorer-lr-scale is {scale}, but no scorer has weights to train.")
        self._hooked: Optional[torch.optim.Optimizer] = None

    def follow(self, optimizer: Any) -> None:
        """Act on the steps of fairseq's optimizer from now on; a resumed run builds a second one."""
        inner = optimizer.optimizer
        if inner is self._hooked:
            return
        if not hasattr(inner, "param_groups"):
            raise UserError("--scorer-lr-scale needs one optimizer, but --optimizer composes several.")
        self._hooked = inner
        weights = self._weights(inner)
        before: list[Tensor] = []

        def take_note(*_: Any) -> None:
            before[:] = [weight.clone() for weight in weights]

        def stretch(*_: Any) -> None:
            for weight, old in zip(weights, before, strict=True):
                weight.copy_(old.lerp(weight, self._scale))

        inner.register_step_pre_hook(take_note)
        inner.register_step_post_hook(stretch)

    def _weights(self, optimizer: torch.optim.Optimizer) -> list[Tensor]:
        """Return the weights of scorers where the optimizer has them.

        It has the trained parameters in their order, the criterion's after them, or copies in higher precision. With
        ``--fp16`` they are one after another in one tensor, without a criterion's.
        """
        held = [parameter.detach() for group in optimizer.param_groups for parameter in group["params"]]
        sizes = [parameter.numel() for parameter in self._trained]
        if len(held) == 1 and held[0].shape == (sum(sizes),):
            held = [values.view_as(own) for values, own in zip(held[0].split(sizes), self._trained, strict=True)]
        if [weight.shape for weight in held[: len(sizes)]] != [parameter.shape for parameter in self._trained]:
            raise UserError(
                f"--scorer-lr-scale needs an optimizer of the model's {len(sizes)} weights in their order, or of one "
                f"tensor of all their {sum(sizes):,} values, but this one has {_shapes(held)}."
            )
        return [held[place] for place in self._places]


def _shapes(held: list[Tensor]) -> str:
    if len(held) == 1:
        return f"one tensor of {held[0].numel():,} values"
    return f"{len(held)} tensors of {sum(weight.numel() for weight in held):,} values in another order or number"


def begin_fine_tuning(cfg: DocumentTaskConfig, model: nn.Module, longest: int) -> Optional[ScorerRate]:
    """Prepare a model for training, before its optimizer is built."""
    if cfg.freeze is not None:
        frozen, whole = freeze(model, cfg.freeze), sum(parameter.numel() for parameter in model.parameters())
        logger.info(f"frozen: {frozen:,} of {whole:,} parameters ({cfg.freeze})")
    if cfg.pooling_warmup:
        model.pooling_warmup = PoolingWarmup(model, longest, cfg.pooling_warmup)
    return None if cfg.scorer_lr_scale == 1 else ScorerRate(model, cfg.scorer_lr_scale)


class WithRegulariser:
    """A criterion whose loss includes those of the model's parts; it is for training steps alone.

    Gradients are divided by what the criterion counts, tokens or documents. The parts' losses are multiplied by it
    before, so that each token or document bears them once.
    """

    def __init__(self, criterion: Any) -> None:
        self.criterion = criterion

    def __call__(self, model: Any, sample: Any) -> tuple[Any, Any, dict[str, Any]]:
        loss, sample_size, logging_output = self.criterion(model, sample)
        own = regulariser_of(model)
        if own is None:
            return loss, sample_size, logging_output
        own = own * sample_size
        return loss + own, sample_size, {**logging_output, _NAME: own.data}


def log_regulariser(logging_outputs: list[dict[str, Any]]) -> None:
    """Log the mean of the parts' losses over all that the criterion counted, if there are any."""
    found = [log for log in logging_outputs if _NAME in log]
    counted = total(found, "sample_size")
    if counted > 0:
        metrics.log_scalar(_NAME, total(found, _NAME) / counted, counted, round=4)
