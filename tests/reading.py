"""Small summarizers, and which of an encoder's vectors depend on a token."""

from typing import Any

import torch
from torch import Tensor

from pyramidions.models import build, preset
from pyramidions.nn import Transformer

VOCABULARY, PAD, END, MARKER = 60, 1, 2, 4
_SMALL: dict[str, Any] = {
    "embed_dim": 16,
    "ffn_embed_dim": 32,
    "num_heads": 2,
    "max_source_positions": 64,
    **dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0),
}


def small(name: str = "vanilla", **overrides: Any) -> Transformer:
    """Build a preset with small sizes and the same weights each time."""
    torch.manual_seed(0)
    return build(preset(name, **{**_SMALL, **overrides}), VOCABULARY, PAD, MARKER).eval()


@torch.no_grad()
def memory(of: Transformer, tokens: Tensor, marked: Tensor | None = None) -> Tensor:
    """Return what the encoder hands on: (B, K, D)."""
    return of.encoder(tokens, tokens.eq(PAD), marked=marked).sequence.x


def moved(of: Transformer, before: Tensor, after: Tensor, marked: Tensor | None = None) -> list[int]:
    """Return the positions whose vectors differ between two texts of one length."""
    differs = (memory(of, before, marked) - memory(of, after, marked)).abs().amax(dim=-1)[0] > 1e-6
    return differs.nonzero().squeeze(1).tolist()


def reached(of: Transformer, tokens: Tensor, changed: int, marked: Tensor | None = None) -> list[int]:
    """Return the positions whose vectors depend on the token at ``changed``."""
    other = tokens.clone()
    other[0, changed] += 1 if tokens[0, changed] < VOCABULARY - 1 else -1
    return moved(of, tokens, other, marked)
