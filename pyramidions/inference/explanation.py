"""Traces what a model read: which tokens reached its decoder, and which ones each word of the summary drew on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.inference.summary import Summary
from pyramidions.nn import Transformer
from pyramidions.nn.pooling import Pooled
from pyramidions.nn.provenance import identity, provenance, through


class LayerTrace(NamedTuple):
    """Trace of an encoder layer.

    Attributes:
        number: of the layer, from 1.
        received: vectors that it worked on.
        handed_on: vectors that it handed on, after pooling.
        sharpness: the share of the strongest member in a pooled vector, on average over vectors of two members or
            more, as `pooled_cross_entropy` logs it; None where the layer does not pool, its pooling has no provenance,
            or there is no such vector.
        reached: (L,), how much of each token is in the vectors handed on, 1 for all of it; None where a pooling has
            no provenance.
    """

    number: int
    received: int
    handed_on: int
    sharpness: float | None
    reached: Tensor | None

    @property
    def share_for_half(self) -> float | None:
        """The least share of all tokens that makes up half of what was handed on; None where that is unknown."""
        if self.reached is None:
            return None
        most_first = self.reached.double().sort(descending=True).values.cumsum(dim=0)
        return int((most_first < most_first[-1] / 2).sum() + 1) / len(self.reached)


class Trace(NamedTuple):
    """The way from tokens to what the decoder looked at.

    Attributes:
        layers: one entry per encoder layer; a layer owned by a pooler (funnel) is reported with that pooler.
        memory: vectors that the decoder could look at.
        provenance: sparse (K, L), what each of them is made of; rows sum to 1, and to 0 at padding. None where a
            pooling has none.
        attention: (T, K), how much of its cross-attention each token of the summary spent on each, the mean over the
            decoder's layers and heads; rows sum to 1. None where the kind of attention cannot tell.
    """

    layers: list[LayerTrace]
    memory: int
    provenance: Tensor | None
    attention: Tensor | None


@dataclass(frozen=True, eq=False)
class Explanation:
    """A summary, and where in the document it comes from.

    What is followed are the vectors that poolings select and mix, and the decoder's cross-attention to them. It does
    not say why a word was written: the encoder's attention mixes tokens, too, and is not followed.

    Attributes:
        summary: as `Summarizer.summarize` returns it.
        document: the text of each token that was read, with the space, line break, or empty line before it; empty for
            the end and for markers between sentences. L of them.
        written: likewise, of the summary. T of them.
        trace: the way from one to the other.
        settings: of the model and of its beam search, each by its name.
    """

    summary: Summary
    document: list[str]
    written: list[str]
    trace: Trace
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def reached(self) -> Tensor | None:
        """How much of each token of the document reached the decoder, (L,); None where that is unknown."""
        return self.trace.layers[-1].reached

    def drew_on(self, start: int, end: int) -> Tensor | None:
        """Return how much the summary's tokens from ``start`` to before ``end`` drew on each token of the document.

        That is the decoder's cross-attention, carried back through the poolings; the mean over these tokens.

        Returns:
            (L,), which sums to 1; None where provenance or attention is unknown.

        Raises:
            IndexError: there are no such tokens.
        """
        if not 0 <= start < end <= len(self.written):
            raise IndexError(
                f"`start` and `end` must be 0 <= start < end <= {len(self.written)}, but are {start} and {end}."
            )
        return None if self._drew_on is None else self._drew_on[start:end].mean(dim=0)

    @cached_property
    def _drew_on(self) -> Tensor | None:
        """How much each token of the summary drew on each token of the document, (T, L)."""
        if self.trace.attention is None or self.trace.provenance is None:
            return None
        return through(self.trace.attention, self.trace.provenance)


@torch.inference_mode()
def trace(transformer: Transformer, document: Tensor, summary: Tensor, eos: int) -> Trace:
    """Follow a document through a model that writes a given summary.

    Args:
        transformer: in evaluation mode.
        document: (L,), the tokens that are read.
        summary: (T,), the tokens that are written.
        eos: the token that the decoder starts from.
    """
    tokens = document[None]
    encoded = transformer.encoder(tokens, tokens.eq(transformer.padding_idx))
    traces = provenance(encoded.pooled, len(document))
    layers: list[LayerTrace] = []
    received = len(document)
    made_of: Tensor | None = identity(received)
    for layer in range(len(transformer.encoder.layers)):
        handed_on, sharpness = received, None
        if layer in encoded.pooled:
            pooled, made_of = encoded.pooled[layer], traces[layer]
            handed_on, sharpness = int((~pooled.padding_mask).sum()), _sharpness(pooled)
        reached = None if made_of is None else made_of.sum(dim=0).to_dense()
        layers.append(LayerTrace(layer + 1, received, handed_on, sharpness, reached))
        received = handed_on
    # What an upsampler adds to the vectors is not followed.
    if transformer.encoder.upsamplers:
        made_of = None
    memory = int((~encoded.padding_mask).sum())
    return Trace(layers, memory, made_of, _attention(transformer, encoded.memory, encoded.padding_mask, summary, eos))


def _attention(
    transformer: Transformer, memory: Tensor, padding_mask: Tensor, summary: Tensor, eos: int
) -> Tensor | None:
    if not transformer.decoder.tells_weights:
        return None
    # A token is predicted from the one before it.
    prefix = torch.cat([summary.new_tensor([eos]), summary[:-1]])[None]
    return transformer.decoder.cross_attention_weights(prefix, memory, padding_mask)[0].cpu()


def _sharpness(pooled: Pooled) -> float | None:
    sharpness = pooled.sharpness()
    if sharpness is None:
        return None
    largest, counted = sharpness
    return float(largest[counted].float().mean()) if counted.any() else None
