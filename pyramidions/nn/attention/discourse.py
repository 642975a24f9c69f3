"""Discourse-aware attention: a decoder weighs the sections of a document, and their words by that."""

import torch
from torch import Tensor
from torch.nn.functional import dropout

from pyramidions.base.device import has_values
from pyramidions.nn.attention.core import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.options import Probability
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, Memory


@ATTENTION.register("discourse")
class DiscourseAttention(CoreAttention):
    """The score of a word is multiplied by the attention to its section (Cohan et al. 2018, section 3.2).

    With query q, keys k_i of words, and s_j, the mean of the keys of section j:

        b = softmax(q . s_j / sqrt(E)) over sections, a = softmax(b_j(i) q . k_i / sqrt(E)) over words

    A section is a unit of the text: a line, a turn or a sentence, as the marker says. Without units, a document is one,
    and this is full attention. In the paper, scores are those of a small network, and s_j is the state of a second
    recurrent network over sections.

    All scores are in memory at once, unlike in full attention.

    Args:
        dropout: probability of dropping an attention weight while training.
    """

    supports = frozenset({Feature.OTHERS, Feature.WEIGHTS, Feature.UNITS})

    def __init__(self, dropout: Probability = 0.0) -> None:
        super().__init__()
        self.of_one_unit = FullAttention(dropout)

    def keys_values(self, projections: Projections, memory: Memory) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return keys of sections and of words, (B, H, S + K, E), values of words, and the section of each word.

        The sections, (B, K) with -1 at padding, are the mask that `forward` and `weights` take.
        """
        k, v, mask = super().keys_values(projections, memory)
        if memory.unit is None:
            return k, v, mask
        count = int(memory.unit.max()) + 1 if has_values(memory.unit) else 1
        # (B, S, K), the share of each word in the mean of its section
        shares = (memory.unit[:, None] == torch.arange(count, device=k.device)[:, None]).to(k.dtype)
        shares = shares / shares.sum(dim=2, keepdim=True).clamp(min=1)
        return torch.cat([shares[:, None] @ k, k], dim=2), v, memory.unit

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k[:, :, -v.size(2) :], context)
        if k.size(2) == v.size(2):
            return self.of_one_unit(q, k, v, context)
        weights = dropout(self.weights(q, k, context).to(v.dtype), self.of_one_unit.dropout, self.training)
        return weights @ v

    def weights(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        section = context.padding_mask
        if section is None or section.size(1) == k.size(2):
            return self.of_one_unit.weights(q, k, context)
        count = k.size(2) - section.size(1)
        scores = (q @ k.mT).to(torch.promote_types(q.dtype, torch.float32)) / q.size(-1) ** 0.5
        lowest = torch.finfo(scores.dtype).min
        # (B, H, Lq, S) and (B, H, Lq, K)
        of_sections, of_words = scores.split([count, section.size(1)], dim=-1)
        # (B, S): documents of fewer sections have no others
        present = section.max(dim=1, keepdim=True).values >= torch.arange(count, device=k.device)
        attention = of_sections.masked_fill(~present[:, None, None], lowest).softmax(dim=-1)
        # (B, H, Lq, K): that to the section of each word
        attention = attention.gather(3, section.clamp(min=0)[:, None, None].expand_as(of_words))
        return (of_words * attention).masked_fill(section[:, None, None] < 0, lowest).softmax(dim=-1)
