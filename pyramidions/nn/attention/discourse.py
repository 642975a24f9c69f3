"""Discourse-aware attention: a decoder weighs the sections of a document, and their words by that."""

from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import dropout

from pyramidions.base.arguments import Count
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.precision import full_precision, full_type
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
        sections: that are told apart, at most; what follows the last one counts as part of it.
    """

    supports = frozenset({Feature.OTHERS, Feature.WEIGHTS, Feature.UNITS})
    narrow: ClassVar = {"sections": 2}

    def __init__(self, sections: Count = 64, dropout: Probability = 0.0) -> None:
        super().__init__()
        self.sections = sections
        self.of_one_unit = FullAttention(dropout)

    def keys_values(self, projections: Projections, memory: Memory) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return keys of sections and of words, (B, H, S + K, E), values of words, and the section of each word.

        The sections, (B, K) with -1 at padding, are the mask that `forward` and `weights` take.
        """
        k, v, mask = super().keys_values(projections, memory)
        if memory.unit is None:
            return k, v, mask
        count = min(self.sections, k.size(2))
        section = _numbered(memory.unit).clamp(max=count - 1)
        return torch.cat([_means(k, section, count), k], dim=2), v, section

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k[:, :, -v.size(2) :], context)
        if k.size(2) == v.size(2):
            return self.of_one_unit(q, k, v, context)
        weights = self.weights(q, k, context).to(v.dtype)
        if self.training and self.of_one_unit.dropout:
            weights = dropout(weights, self.of_one_unit.dropout)
        return weights @ v

    def weights(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        section = context.padding_mask
        if section is None or section.size(1) == k.size(2):
            return self.of_one_unit.weights(q, k, context)
        count = k.size(2) - section.size(1)
        wide = full_type(q.dtype)
        lowest = torch.finfo(wide).min
        # (B, H, Lq, S) and (B, H, Lq, K)
        of_sections, of_words = (
            (q @ keys.mT).to(wide) / q.size(-1) ** 0.5 for keys in k.split([count, section.size(1)], dim=2)
        )
        # (B, S): documents of fewer sections have no others
        present = section.max(dim=1, keepdim=True).values >= torch.arange(count, device=k.device)
        attention = of_sections.masked_fill(~present[:, None, None], lowest).softmax(dim=-1)
        # (B, H, Lq, K): that to the section of each word
        attention = attention.gather(3, section.clamp(min=0)[:, None, None].expand_as(of_words))
        return (of_words * attention).masked_fill(section[:, None, None] < 0, lowest).softmax(dim=-1)


def _numbered(unit: Tensor) -> Tensor:
    """Number the units of (B, K) from 0 without gaps, -1 at padding: a pooling may leave some out."""
    ordered, order = unit.sort(dim=1)
    rises = ordered.diff(dim=1, prepend=torch.full_like(unit[:, :1], -1)) > 0
    return torch.zeros_like(unit).scatter(1, order, rises.cumsum(dim=1) - 1)


def _means(k: Tensor, section: Tensor, count: int) -> Tensor:
    """Return the means of keys (B, H, K, E) in each of so many sections: (B, H, S, E)."""
    # Thousands of numbers add up: in half precision the sum would lose most of them.
    wide = full_precision(k)
    # Padding goes into a further section, which is left out.
    place = torch.where(section < 0, count, section)
    sizes = wide.new_zeros(len(k), count + 1).scatter_add(1, place, torch.ones_like(place, dtype=wide.dtype))
    sums = wide.new_zeros(*k.shape[:2], count + 1, k.size(3)).scatter_add(2, place[:, None, :, None].expand_as(k), wide)
    return (sums / sizes.clamp(min=1)[:, None, :, None])[:, :, :count].to(k.dtype)
