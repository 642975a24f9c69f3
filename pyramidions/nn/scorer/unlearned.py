"""Scorers without weights: they read attention, a coordinate, or positions, or nothing at all."""

import torch
from torch import Tensor

from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.scorer.core import SCORER, Scorer, score_of
from pyramidions.nn.sequence import PoolingContext, Sequence


@SCORER.register("attention")
class AttentionScorer(Scorer):
    """How much attention a position received in the layer before (Goyal et al. 2020, section 3.2); no gradient."""

    reads_attention = True

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        return context.received()


@SCORER.register("embedding")
class EmbeddingScorer(Scorer):
    """One coordinate of the representation itself, which the model learns to use (Pietruszka et al. 2022, table 4).

    Args:
        coordinate: which one.
    """

    def __init__(self, embed_dim: int, coordinate: int = 0) -> None:
        super().__init__()
        if not 0 <= coordinate < embed_dim:
            raise ValueError(f"`coordinate` must be at least 0 and below {embed_dim}, but is {coordinate}.")
        self.coordinate = coordinate

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        return score_of(full_precision(sequence.x[..., self.coordinate]))


@SCORER.register("index")
class IndexScorer(Scorer):
    """1 at every stride-th position, 0 elsewhere: selection without a look at content.

    Args:
        stride: the configured length over the configured k, whatever a batch's length.
    """

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, sequence: Sequence, context: PoolingContext) -> Tensor:
        every = torch.arange(sequence.x.size(1), device=sequence.x.device) % self.stride == 0
        return every.float().expand(sequence.x.shape[:2])


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
