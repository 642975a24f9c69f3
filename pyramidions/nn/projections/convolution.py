"""A convolution over an image of tokens x modules, whose channels are the numbers of a module."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ModuleConvolution(nn.Module):
    """As many filters as a module has numbers, each over some tokens and modules (Jaszczur et al. 2021, section 3.2).

    A vector is made of its own token and those before it. Beside the first and the last module are zeros.

    For few tokens it copies what each filter sees, and multiplies it with the filters. A convolution of torch would
    first bring them into an order of its own, which takes a CPU longer than reading them. Both compute the same.
    """

    def __init__(self, channels: int, kernel: int, length_kernel: int) -> None:
        super().__init__()
        self._length_kernel, self._window, self._beside = length_kernel, kernel * channels, kernel // 2 * channels
        self._channels = channels
        #: (F, modules, M channels, M filters)
        self.weight = nn.Parameter(torch.empty(length_kernel, kernel, channels, channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        # Glorot: as many numbers see one as are seen.
        bound = (3 / (channels * length_kernel * kernel)) ** 0.5
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, x: Tensor, windows: Tensor | None = None) -> Tensor:
        """Filter: (B, F - 1 + L, D), with what comes before the first token -> (B, L, D); ``windows`` may be given."""
        if windows is None and not self.sees_few(x):
            return self.convolved(x)
        return self.multiplied(x, windows)

    def sees_few(self, x: Tensor) -> bool:
        """Return whether one product is faster than a convolution."""
        # As measured: 16 modules of 64 numbers take as long either way with some 16 sequences of one token.
        return x.numel() <= 8 * self._channels**2

    def windows(self, x: Tensor) -> Tensor:
        """Copy what each filter sees: (B, F - 1 + L, D) -> (B * L * S, F * kernel * M)."""
        padded = F.pad(x, (self._beside, self._beside)) if self._beside else x
        # Windows over modules, then over tokens: (B, L, S, kernel * M, F)
        seen = padded.unfold(2, self._window, self._channels).unfold(1, self._length_kernel, 1)
        return seen.mT.reshape(-1, self._length_kernel * self._window)

    def multiplied(self, x: Tensor, windows: Tensor | None = None) -> Tensor:
        """Compute `forward` by one product; ``windows`` are those of ``x``, if they were copied."""
        windows = self.windows(x) if windows is None else windows
        # (F * kernel * M, M)
        made = torch.addmm(self.bias, windows, self.weight.flatten(0, 2))
        return made.view(x.size(0), -1, x.size(2))

    def convolved(self, x: Tensor) -> Tensor:
        """Compute `forward` by a convolution."""
        # (B, L, D) -> (B, L, S, M) -> (B, M, L, S), the order that convolutions ask for
        image = x.unflatten(-1, (-1, self._channels)).permute(0, 3, 1, 2)
        filtered = F.conv2d(image, self.weight.permute(3, 2, 0, 1), self.bias, padding=(0, self.weight.size(1) // 2))
        return filtered.permute(0, 2, 3, 1).flatten(2)


def filtered(x: Tensor, *filters: ModuleConvolution) -> list[Tensor]:
    """Filter ``x`` by some that see as many tokens and modules; what they see is copied once."""
    first = filters[0]
    if not first.sees_few(x):
        return [each(x) for each in filters]
    windows = first.windows(x)
    return [each(x, windows) for each in filters]
