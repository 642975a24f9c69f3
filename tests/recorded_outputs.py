"""What a model answers to fixed documents, as numbers that a file can keep."""

from typing import Any

import torch
from torch import Tensor

from pyramidions.nn import BeamSearch, Transformer

#: tokens of the two documents, their end included
LENGTHS = (30, 11)
PREFIX = (2, 5, 9, 4, 7)


def documents() -> Tensor:
    """Two documents of different length, padded on the right: (2, 30)."""
    # Small steps of a fixed walk over the ids 4 to 19; no generator, which another torch might change.
    tokens = torch.tensor([[4 + (7 * i * i + 3 * i + 5 * row) % 16 for i in range(LENGTHS[0])] for row in range(2)])
    for row, length in enumerate(LENGTHS):
        tokens[row, length - 1] = 2
        tokens[row, length:] = 1
    return tokens


@torch.no_grad()
def outputs(transformer: Transformer) -> dict[str, Any]:
    """Return encoder memory, its padding mask, logits of a fixed prefix, and what beam search finds."""
    tokens = documents()
    encoded = transformer.encoder(tokens, tokens.eq(transformer.padding_idx))
    logits = transformer(tokens, torch.tensor([PREFIX] * len(tokens)))
    found = BeamSearch(beam=3, min_len=2, max_len=8, no_repeat_ngram=2)(transformer, tokens)
    return {
        "memory": numbers(encoded.sequence.x.masked_fill(encoded.sequence.padding_mask.unsqueeze(-1), 0.0)),
        "padding_mask": encoded.sequence.padding_mask.int().tolist(),
        "logits": numbers(logits),
        "hypotheses": [[[h.tokens.tolist(), float(f"{h.score:.7g}")] for h in of_one] for of_one in found],
    }


def numbers(x: Tensor) -> Any:
    """Nested lists of ``x`` with seven digits, as many as float32 has."""
    return [numbers(row) for row in x] if x.dim() else float(f"{x.item():.7g}")
