"""Traces what a model read: which tokens reached its decoder, and which ones each word of the summary drew on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from pyramidions.inference.summary import Summary
from pyramidions.inference.supported_sentences import supported_sentences
from pyramidions.nn import Transformer
from pyramidions.nn.pooling import Pooled
from pyramidions.nn.provenance import Provenance
from pyramidions.nn.sublayer import Memory
from pyramidions.nn.upsampling import Upsampler
from pyramidions.text.support import SummarySentence


class LayerTrace(NamedTuple):
    """Trace of an encoder layer."""

    number: int  # of the layer, from 1
    received: int  # vectors that it worked on
    handed_on: int  # vectors that it handed on, after pooling
    # The share of the strongest member in a pooled vector, on average over vectors of two members or more, as
    # `pooled_cross_entropy` logs it; None where the layer does not pool, its pooling has no provenance, or there is no
    # such vector.
    sharpness: float | None
    # (L,), how much of each token is in the vectors handed on, 1 for all of it; None where a pooling has no provenance.
    reached: Tensor | None

    @property
    def share_for_half(self) -> float | None:
        """The least share of all tokens that makes up half of what was handed on; None where that is unknown."""
        if self.reached is None:
            return None
        most_first = self.reached.double().sort(descending=True).values.cumsum(dim=0)
        return int((most_first < most_first[-1] / 2).sum() + 1) / len(self.reached)


class MemoryTrace(NamedTuple):
    """What the decoder looked at of an encoder layer's output."""

    layer: int | None  # its number, from 1; None for the output of the encoder
    vectors: int  # that the decoder could look at
    # What each of them is made of, K vectors of B = 1 documents. None where a pooling has none.
    provenance: Provenance | None
    # (T, K), how much of its attention to the encoder each token of the summary spent on each, the mean over the
    # decoder's layers and heads; rows sum to 1, less the share of heads that found nothing to read. A decoder without
    # cross-attention attends to the summary as well, and rows sum to what it does not spend on that. None where the
    # kind of attention cannot tell.
    attention: Tensor | None

    @property
    def is_traced(self) -> bool:
        """Whether it is known which tokens of the document the summary drew on."""
        return self.provenance is not None and self.attention is not None

    def drew_on(self) -> Tensor | None:
        """Return how much each token of the summary drew on each token of the document, (T, L); None if unknown."""
        if self.provenance is None or self.attention is None:
            return None
        return self.provenance.of(self.attention[None])[0]


class Trace(NamedTuple):
    """How tokens became the vectors that the decoder looked at."""

    # One entry per encoder layer; a layer owned by a pooler (funnel) is reported with that pooler.
    layers: list[LayerTrace]
    # memory, provenance, attention: of the encoder's output, see `MemoryTrace`.
    memory: int
    provenance: Provenance | None
    attention: Tensor | None
    further: tuple[MemoryTrace, ...] = ()  # outputs of earlier layers that the decoder looked at, too
    # (L,), True at global tokens, which all others see and which see all others; None without any.
    seen_by_all: Tensor | None = None
    # (T, L), how likely each token of the summary was copied from each token of the document, given that it was
    # written; rows sum to how likely it was copied at all. None where the output layer copies nothing.
    copied: Tensor | None = None

    @property
    def memories(self) -> tuple[MemoryTrace, ...]:
        """All that the decoder looked at, the encoder's output first."""
        return MemoryTrace(None, self.memory, self.provenance, self.attention), *self.further


@dataclass(frozen=True, eq=False)
class Explanation:
    """A summary, and where in the document it comes from.

    What is followed are the vectors that poolings select and mix, and the decoder's cross-attention to them. It does
    not say why a word was written: the encoder's attention mixes tokens, too, and is not followed.

    Attributes:
        summary: as `Summarizer.summarize` returns it.
        document: the text of each token that was read, with the space, line break, or empty line before it; empty for
            the end and for markers between sentences. L of them; those of a query come first.
        written: likewise, of the summary. T of them.
        trace: the way from one to the other.
        settings: of the model and of its beam search, each by its name.
        asked: number of tokens before the document's own: the prefix, the query and its end; 0 without both.
    """

    summary: Summary
    document: list[str]
    written: list[str]
    trace: Trace
    settings: Mapping[str, str] = field(default_factory=dict)
    asked: int = 0

    def answering(self, query: str | None) -> "Explanation":
        """Return the explanation with the query that its summary answers."""
        return replace(self, summary=self.summary._replace(query=query))

    def __repr__(self) -> str:
        return f"<Explanation of {self.summary}>"

    def _repr_html_(self) -> str:
        """Return the summary, for notebooks; `html_page` shows everything."""
        return self.summary._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """Return the summary, and what supports each of its sentences, as values that JSON holds."""
        return self.summary._replace(sentences=self.sentences).to_dict()

    @property
    def reached(self) -> Tensor | None:
        """How much of each token of the document reached the decoder, (L,); None where that is unknown."""
        return self.trace.layers[-1].reached

    def drew_on(self, start: int, end: int, memory: int | None = None) -> Tensor | None:
        """Return how much the summary's tokens from ``start`` to before ``end`` drew on each token of the document.

        That is the decoder's cross-attention, carried back through the poolings; the mean over these tokens.

        Args:
            start, end: of the tokens.
            memory: which of `Trace.memories` they drew on; None for the mean over all.

        Returns:
            (L,), which sums to what the rows of `MemoryTrace.attention` do; None where provenance or attention is
            unknown, of any of several memories.

        Raises:
            IndexError: there are no such tokens.
        """
        self._check_tokens(start, end)
        drew = self._drew_on if memory is None else self._drew_on_each[memory]
        return None if drew is None else drew[start:end].mean(dim=0)

    def copied(self, start: int, end: int) -> Tensor | None:
        """Return how likely tokens of the summary, as in `drew_on`, were copied from each of the document's: (L,).

        The mean over these tokens of `Trace.copied`; None where the output layer copies nothing.
        """
        self._check_tokens(start, end)
        return None if self.trace.copied is None else self.trace.copied[start:end].mean(dim=0)

    def _check_tokens(self, start: int, end: int) -> None:
        if not 0 <= start < end <= len(self.written):
            raise IndexError(
                f"`start` and `end` must be 0 <= start < end <= {len(self.written)}, but are {start} and {end}."
            )

    @cached_property
    def sentences(self) -> tuple[SummarySentence, ...]:
        """The sentences of the summary, and which sentences of the document support each."""
        # What is asked supports nothing.
        document = [*[""] * self.asked, *self.document[self.asked :]]
        return supported_sentences(document, self.written, self._drew_on)

    @cached_property
    def _drew_on(self) -> Tensor | None:
        """How much each token of the summary drew on each token of the document, (T, L)."""
        known = [drew for drew in self._drew_on_each if drew is not None]
        # Each memory is read by an attention of its own.
        return sum(known[1:], known[0]) / len(known) if len(known) == len(self.trace.memories) else None

    @cached_property
    def _drew_on_each(self) -> list[Tensor | None]:
        """The same for each memory alone."""
        return [memory.drew_on() for memory in self.trace.memories]


@torch.inference_mode()
def trace(transformer: Transformer, document: Tensor, summary: Tensor, eos: int) -> Trace:
    """Follow a document, ids (L,), through a model in evaluation mode that writes a given summary, (T,)."""
    tokens, encoder = document[None], transformer.encoder
    padding_mask = tokens.eq(transformer.padding_idx)
    encoded = encoder(tokens, padding_mask)
    tokens_alone = Provenance.of_positions(padding_mask.cpu())
    layers: list[LayerTrace] = []
    received = len(document)
    made_of: Provenance | None = tokens_alone
    # What the outputs of layers are made of, before their pooling; the encoder's output is that of no layer.
    read: dict[int | None, Provenance | None] = {}
    # from which layer on tokens are read again
    again = len(encoder.layers) - sum(cast(Upsampler, one).layers for one in encoder.upsamplers.values())
    for layer in range(len(encoder.layers)):
        if layer == again:
            received, made_of = len(document), tokens_alone
        handed_on, sharpness, read[layer] = received, None, made_of
        if layer in encoded.pooled:
            pooled = encoded.pooled[layer]
            made_of = _pooled(made_of, pooled)
            handed_on, sharpness = int((~pooled.padding_mask).sum()), _sharpness(pooled)
        reached = None if made_of is None else made_of.of(torch.ones(1, 1, made_of.weights.size(1)))[0, 0]
        layers.append(LayerTrace(layer + 1, received, handed_on, sharpness, reached))
        received = handed_on
    # What an upsampler adds to the vectors is not followed; attention is not, either.
    read[None] = None if encoder.upsamplers and again == len(encoder.layers) else made_of
    attention = _attention(transformer, encoded.memories, summary, eos)
    memories = [
        MemoryTrace(None if layer is None else layer + 1, _vectors(memory), read[layer], weights)
        for layer, memory, weights in zip(encoder.memory_layers, encoded.memories, attention, strict=True)
    ]
    (output,) = (memory for memory in memories if memory.layer is None)
    further = tuple(memory for memory in memories if memory.layer is not None)
    marks = encoder.structure_of(tokens, padding_mask).marks
    copied = transformer.decoder.copied(summary[None], encoded.memories, eos)
    return Trace(
        layers,
        *output[1:],
        further,
        None if marks is None else marks.marked[0].cpu(),
        None if copied is None else copied[0].float().cpu(),
    )


def _pooled(before: Provenance | None, pooled: Pooled) -> Provenance | None:
    if before is None or pooled.sources is None or pooled.weights is None:
        return None
    return before.pooled(pooled.sources.cpu(), pooled.weights.cpu())


def _vectors(memory: Memory) -> int:
    x, mask, *_ = memory
    return x.size(1) if mask is None else int((~mask).sum())


def _attention(
    transformer: Transformer, memories: tuple[Memory, ...], summary: Tensor, eos: int
) -> list[Tensor | None]:
    """Return how much each token attends to each vector of each memory."""
    if not transformer.decoder.tells_weights:
        return [None] * len(memories)
    # A token is predicted from the one before it.
    prefix = torch.cat([summary.new_tensor([eos]), summary[:-1]])[None]
    return [weights[0].cpu() for weights in transformer.decoder.cross_attention_weights(prefix, memories)]


def _sharpness(pooled: Pooled) -> float | None:
    sharpness = pooled.sharpness()
    if sharpness is None:
        return None
    largest, counted = sharpness
    return float(largest[counted].float().mean()) if counted.any() else None
