"""The random scorer."""

import torch
from torch import Tensor

from pyramidions.nn.context import PoolingContext
from pyramidions.nn.scorer.core import SCORER, Scorer
from pyramidions.nn.sequence import Sequence


@SCORER.register("random")
class RandomScorer(Scorer):
    """Uniform in [0, 1): drawn anew at each training step, fixed by position otherwise.

    Training draws from torch's generator of the device, as dropout does, so that a seed makes it reproducible.

    Args:
        seed: of the scores by position.
    """

    _CHUNK = 1024  # positions per seed, so that a longer document begins with the scores of a shorter one

    def __init__(self, seed: int = 1) -> None:
        super().__init__()
        self.seed = seed

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        batch, length = sequence.padding_mask.shape
        if self.training:
            return torch.rand(batch, length, device=sequence.x.device)
        chunks = range(-(-length // self._CHUNK))
        seeded = (torch.Generator().manual_seed(self.seed + c) for c in chunks)
        fixed = [torch.rand(self._CHUNK, generator=generator, device="cpu") for generator in seeded]
        return torch.cat(fixed)[:length].to(sequence.x.device).expand(batch, length)
