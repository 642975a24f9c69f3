"""From tokens, and their tags, to the input of the first layer."""

import math

import torch
from torch import Tensor, nn

from pyramidions.nn.functional.dropout import Dropout
from pyramidions.nn.positions import Positions

#: Numbers of parts of speech and of entities, none of each included.
PARTS_OF_SPEECH, ENTITIES = 18, 22


class TagEmbeddings(nn.Module):
    """Joins a token's embedding with those of its part of speech and its entity (Zhu et al. 2020, section 3.2).

    The three are concatenated, and mapped to the width of the model. Training begins as without tags.
    """

    def __init__(self, embed_dim: int, tag_dim: int) -> None:
        super().__init__()
        self.parts_of_speech = nn.Embedding(PARTS_OF_SPEECH, tag_dim)
        self.entities = nn.Embedding(ENTITIES, tag_dim)
        self.joined = nn.Linear(embed_dim + 2 * tag_dim, embed_dim)
        with torch.no_grad():
            self.joined.weight.copy_(torch.eye(*self.joined.weight.shape))
            self.joined.bias.zero_()

    def forward(self, x: Tensor, tags: Tensor) -> Tensor:
        """Add tags to embeddings: x of (B, L, D) and tags of (B, L), each a pair as one number -> (B, L, D)."""
        parts, entities = tags // ENTITIES, tags % ENTITIES
        joined: Tensor = self.joined(torch.cat([x, self.parts_of_speech(parts), self.entities(entities)], dim=-1))
        return joined.to(x.dtype)


class Embedder(nn.Module):
    """Embeds tokens and their positions.

    Token embeddings are multiplied by sqrt(D) if ``scale`` is true (Vaswani et al. 2017, section 3.4). A ``norm``
    follows the sum with those of positions, as in BART.
    """

    def __init__(
        self,
        tokens: nn.Embedding,
        positions: Positions | None = None,
        norm: nn.Module | None = None,
        scale: bool = True,
        dropout: float = 0.0,
        tags: TagEmbeddings | None = None,
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.norm = norm
        self.scale = math.sqrt(tokens.embedding_dim) if scale else 1.0
        self.dropout = Dropout(dropout)
        self.tags = tags

    def forward(
        self, tokens: Tensor, start: int = 0, position: Tensor | None = None, tags: Tensor | None = None
    ) -> Tensor:
        """Embed tokens: (B, L) -> (B, L, D); the first has position ``start``, or each its own (B, L)."""
        x = self.tokens(tokens) * self.scale
        if self.tags is not None and tags is not None:
            x = self.tags(x, tags)
        if self.positions is not None:
            end = start + tokens.size(1)
            position = torch.arange(start, end, device=tokens.device) if position is None else position
            x = x + self.positions(position, end).to(x.dtype)
        return self.dropout(x if self.norm is None else self.norm(x))
