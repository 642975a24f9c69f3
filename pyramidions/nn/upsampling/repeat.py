"""Upsampling by repetition."""

from torch import Tensor

from pyramidions.nn.sequence import Sequence
from pyramidions.nn.upsampling.core import UPSAMPLING, Upsampler


@UPSAMPLING.register("repeat")
class RepeatUpsampler(Upsampler):
    """Repeats every vector, and adds the vectors before pooling (Dai et al. 2020, section 2.3).

    Args:
        window: positions that a pooled vector stands for.
    """

    takes_window = True

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, x: Tensor, unpooled: Sequence) -> Tensor:
        # (B, K, D) -> (B, K W, D) -> (B, L, D)
        return x.repeat_interleave(self.window, dim=1)[:, : unpooled.x.size(1)] + unpooled.x
