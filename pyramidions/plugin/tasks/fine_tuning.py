"""Training that begins gently, as suits pretrained weights."""

import logging
from typing import Optional

from torch import nn

from pyramidions.base.errors import UserError
from pyramidions.models.freezing import freeze
from pyramidions.models.pooling_warmup import PoolingWarmup
from pyramidions.plugin.tasks.config import DocumentTaskConfig
from pyramidions.plugin.tasks.scorer_rate import ScorerRate

logger = logging.getLogger(__name__)


def begin_fine_tuning(cfg: DocumentTaskConfig, model: nn.Module, longest: int) -> Optional[ScorerRate]:
    """Prepare a model for training, before its optimizer is built.

    Args:
        cfg: the task's config.
        model: what fairseq trains.
        longest: tokens of the longest document.

    Returns:
        What shall follow the optimizer; None if all weights learn at one rate.

    Raises:
        UserError: a field breaks a rule, or does not fit the model.
    """
    if cfg.freeze is not None:
        frozen, whole = freeze(model, cfg.freeze), sum(parameter.numel() for parameter in model.parameters())
        logger.info(f"frozen: {frozen:,} of {whole:,} parameters ({cfg.freeze})")
    if cfg.pooling_warmup < 0:
        raise UserError(f"--pooling-warmup must be at least 0, but is {cfg.pooling_warmup}.")
    if cfg.pooling_warmup:
        model.pooling_warmup = PoolingWarmup(model, longest, cfg.pooling_warmup)
    return None if cfg.scorer_lr_scale == 1 else ScorerRate(model, cfg.scorer_lr_scale)
