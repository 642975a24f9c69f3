"""What predicts boundaries."""

import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.functional.tiles import full_precision


class BoundaryPredictor(nn.Module):
    """Two linear layers with a GELU in between (Nawrot et al. 2023, section 3.1).

    Args:
        embed_dim: D.
        ffn_embed_dim: width between them.
    """

    def __init__(self, embed_dim: int, ffn_embed_dim: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, ffn_embed_dim)
        self.fc2 = nn.Linear(ffn_embed_dim, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits of boundaries, in float32 or better: (B, L, D) -> (B, L)."""
        return full_precision(self.fc2(F.gelu(self.fc1(x))).squeeze(2))
