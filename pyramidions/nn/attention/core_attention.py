"""The role of an attention kind, and the registry of kinds."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import Enum
from typing import ClassVar

from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, Memory, State


class Feature(Enum):
    """What an attention kind may be able to do, and what an error says of one that is not."""

    ITSELF = "is for reading another sequence"  #: keys may come from the sequence of the queries
    OTHERS = "reads its own sequence alone"  #: keys may come from another sequence than queries
    CAUSAL = "cannot be causal"  #: `LayerContext.is_causal`
    STEPS = "cannot attend from new positions to kept ones"  #: `new_state` and `step`
    ACROSS = "reads no keys but those of its own queries"  #: `across`
    RECEIVED = "cannot tell how much attention a position received"  #: `received`
    WEIGHTS = "cannot tell how much a query attends to each key"  #: `weights`
    MARKS = "knows no global tokens"  #: shows `LayerContext.marks` to all positions
    UNITS = "reads beyond units of the text"  #: stays inside `LayerContext.units`, or weighs those of a memory
    QUERY_MASKS = "has one mask for all queries"  #: the mask may differ from query to query, and be an `as_bias`
    KEY_BIAS = "adds nothing to the scores of a key"  #: `with_key_bias`: weights are a softmax of products alone
    STEPS_ALIKE = "takes other steps the more was written"  #: one new position: `SublayerFunction.steps_alike`
    DISTANCES = "reads no distances"  #: takes `Distances`, which all layers of a model share


class CoreAttention(nn.Module, ABC):
    """What happens between projected heads: queries, keys and values in, mixed values out."""

    #: what the kind can do
    supports: ClassVar[frozenset[Feature]]
    #: whether queries and keys are one projection
    shares_query_key: ClassVar[bool] = False
    #: attributes of modules that alike layers of an encoder, or of a decoder, share
    shared: ClassVar[tuple[str, ...]] = ()
    #: positions interact only within blocks of this many, counted from the first; None for no such limit
    confined_to: int | None = None
    #: the most positions that its weights are made for; None for any number
    longest: int | None = None
    #: options with which it sees all of a short sequence (wide), or only parts of it (narrow)
    wide: ClassVar[Mapping[str, int]] = {}
    narrow: ClassVar[Mapping[str, int]] = {}
    #: whether it is full attention where it sees everything
    is_exact: ClassVar[bool] = True
    #: probability of dropping an attention weight while training
    dropout: float = 0.0

    @property
    def dropped(self) -> float:
        """The probability of dropping an attention weight now."""
        return self.dropout if self.training else 0.0

    @abstractmethod
    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        """Attend from queries (B, H, Lq, E) to keys and values (B, H, Lk, E): (B, H, Lq, E), finite everywhere.

        The ``padding_mask`` of the context is (B, Lk), True at padding, or None; or the mask that `keys_values`
        returned. A kind that supports ``QUERY_MASKS`` also takes (B, Lq, Lk), True at keys that a query must not see,
        and, unless causal, the `as_bias` of either mask. If ``is_causal``, query i sees keys up to i, and the last one
        every key. A kind reads the ``marks`` and ``units`` if it supports them; what marked positions see themselves is
        computed around it. The output means nothing at queries that are padding, and at marked ones.
        """

    def reading(self, x: Tensor, projections: Projections, context: LayerContext) -> LayerContext:
        """Return the context of `forward` with what else the kind reads of all vectors ``x`` (B, L, D): nothing."""
        return context

    def augmented(self, output: Tensor, context: LayerContext) -> Tensor:
        """Return the projected output of self-attention, (B, L, D), with what else the kind adds to it: nothing."""
        return output

    def cannot(self, feature: Feature) -> ValueError:
        """Return the error of a kind that does not support a feature."""
        return ValueError(f"{type(self).__name__} {feature.value}.")

    def refuse(self, q: Tensor, k: Tensor, context: LayerContext) -> None:
        """Raise ValueError if the kind cannot attend from queries (B, H, Lq, E) to keys (B, H, Lk, E)."""
        if Feature.OTHERS not in self.supports and q.size(2) != k.size(2):
            raise ValueError(
                f"{type(self).__name__} needs as many keys as queries, but {k.size(2)} keys met {q.size(2)} queries."
            )
        if context.is_causal and Feature.CAUSAL not in self.supports:
            raise self.cannot(Feature.CAUSAL)

    def keys_values(self, projections: Projections, memory: Memory) -> tuple[Tensor, Tensor, Tensor | None]:
        """Project a memory to what queries read of it, by default all; a decoder keeps that between steps.

        The memory's ``padding_mask`` is (B, K), True at padding, or None; if the kind supports ``QUERY_MASKS``, its
        `as_bias`, too. Returned are keys and values, (B, H, Lk, E) each, and the mask for `forward` and `weights`.
        """
        return *projections.keys_values(memory.x), memory.padding_mask

    def spread(self, weights: Tensor, padding_mask: Tensor) -> Tensor:
        """Return `weights` over the keys of `keys_values` as weights over all of a memory, with zeros elsewhere.

        (B, H, Lq, Lk), and (B, K), True at padding of the memory -> (B, H, Lq, K).
        """
        return weights

    def new_state(self) -> State:
        """Return the state before the first `step`."""
        raise self.cannot(Feature.STEPS)

    def step(self, q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None, state: State) -> Tensor:
        """Attend, causally, from the positions that follow those in ``state``, and extend it in place.

        Queries, keys and values are (B, H, WT, E), of the T new positions of each of the W hypotheses of a document.
        ``blocked`` (B, 1, WT, S) is the `as_bias` of the written positions, new ones included, that each query must not
        see: those of other hypotheses, and later ones; None where nothing is blocked. Returns (B, H, WT, E), which is
        what one pass over the whole of a hypothesis gives.
        """
        raise self.cannot(Feature.STEPS)

    def across(self) -> "CoreAttention":
        """Return the attention of other queries to the same keys, within one block if there are blocks."""
        raise self.cannot(Feature.ACROSS)

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        """Return how much self-attention each position received, over all heads and real queries.

        (B, H, L, E) twice -> (B, L), zero at padding. No L x L matrix is ever held in memory.
        """
        raise self.cannot(Feature.RECEIVED)

    def weights(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        """Return how much each query attends to each key, without dropout: (B, H, Lq, Lk) in float32; rows sum to 1."""
        raise self.cannot(Feature.WEIGHTS)


ATTENTION: Registry[CoreAttention] = Registry("attention")


def supporting(feature: Feature) -> tuple[str, ...]:
    """Return the names of all kinds that support a feature."""
    return tuple(name for name in ATTENTION.names if feature in ATTENTION[name].supports)
