"""Pairs that are drawn as they are read."""

from typing import Protocol

from fairseq.data import Dictionary

from pyramidions.plugin.tasks.pair_dataset import PairDataset
from pyramidions.plugin.tasks.sized_texts import SizedTexts


class Drawing(Protocol):
    """What draws pairs anew in each epoch."""

    epoch: int


class DrawnPairs(PairDataset):
    """Pairs of which training draws new ones in each epoch; validation has the same in all.

    Args:
        drawing: what both sides read.
        source: the sources.
        target: the targets.
        dictionary: of both.
        is_training: pairs are shuffled, and new in each epoch.
    """

    def __init__(
        self, drawing: Drawing, source: SizedTexts, target: SizedTexts, dictionary: Dictionary, is_training: bool
    ) -> None:
        super().__init__(source, target, dictionary, shuffle=is_training)
        self._drawing = drawing
        self._is_training = is_training

    def set_epoch(self, epoch: int) -> None:
        """Draw anew in each epoch of training."""
        super().set_epoch(epoch)
        if self._is_training:
            self._drawing.epoch = epoch

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        """False: fairseq's workers of an earlier epoch would draw as they did then."""
        return False
