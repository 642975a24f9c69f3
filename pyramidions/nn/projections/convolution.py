"""A convolution over an image of tokens x modules, whose channels are the numbers of a module."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ModuleConvolution(nn.Module):
    """As many filters as a module has numbers, each over some tokens and modules (Jaszczur et al. 2021, section 3.2).

    A vector is made of its own token and those before it. Beside the first and the last module are zeros.

    Args:
        channels: M, numbers of a module.
        kernel: modules that a filter sees, an odd number, its own in the middle.
        length_kernel: F, tokens that it sees, its own last.
    """

    def __init__(self, channels: int, kernel: int, length_kernel: int) -> None:
        super().__init__()
        #: (M filters, F, modules, M channels): a filter lies in memory as the image does
        self.weight = nn.Parameter(torch.empty(channels, length_kernel, kernel, channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        # Glorot: as many numbers see one as are seen.
        bound = (3 / (channels * length_kernel * kernel)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Filter.

        Args:
            x: (B, F - 1 + L, D), what comes before the first token in front.

        Returns:
            (B, L, D).
        """
        # (B, L, D) -> (B, L, S, M) -> (B, M, L, S), the order that convolutions ask for
        image = x.unflatten(-1, (-1, self.weight.size(0))).permute(0, 3, 1, 2)
        filtered = F.conv2d(image, self.weight.permute(0, 3, 1, 2), self.bias, padding=(0, self.weight.size(2) // 2))
        return filtered.permute(0, 2, 3, 1).flatten(2)
