"""Embeddings of the tags of tokens."""

import torch
from torch import Tensor, nn

#: Numbers of parts of speech and of entities, none of each included.
PARTS_OF_SPEECH, ENTITIES = 18, 22


class TagEmbeddings(nn.Module):
    """Joins a token's embedding with those of its part of speech and its entity (Zhu et al. 2020, section 3.2).

    The three are concatenated, and mapped to the width of the model. Training begins as without tags.

    Args:
        embed_dim: D.
        tag_dim: width of the embedding of a tag.
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
        return self.joined(torch.cat([x, self.parts_of_speech(parts), self.entities(entities)], dim=-1))
