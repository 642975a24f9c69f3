"""The role of a pooler, its output, and the registry of kinds."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from pyramidions.base.device import has_values
from pyramidions.base.registry import Registry
from pyramidions.nn.sequence import PoolingContext, Sequence


class Pooled(NamedTuple):
    """The output of a pooler."""

    x: Tensor  # (B, K, D)
    padding_mask: Tensor  # (B, K), True at padding
    sources: Tensor | None = None  # (B, K, G), which inputs each vector is made of; None if the kind has no provenance
    weights: Tensor | None = None  # (B, K, G), how much of each; None likewise
    # number of real vectors of each document, B integers on the host, from a kind whose `Pooler.kept` cannot tell;
    # padding comes after them. None otherwise.
    lengths: list[int] | None = None
    # (B,), the highest less the lowest score of each document, NaN for one whose vectors are all handed on; None
    # without a scorer that learns to select
    spread: Tensor | None = None
    key_bias: Tensor | None = None  # (B, K), what later attention adds to the scores of each vector as a key, or None

    def sharpness(self) -> tuple[Tensor, Tensor] | None:
        """Return the share of each vector's strongest member, (B, K), and whether it has several, (B, K); or None."""
        if self.weights is None or self.sources is None:
            return None
        several = (self.sources != self.sources[..., :1]).any(-1)
        return self.weights.amax(-1), several & ~self.padding_mask

    def sequence(self, unpooled: Sequence, lengths: list[int] | None) -> Sequence:
        """Return what follows a pooling of ``unpooled``: every field, for the vectors handed on and their lengths."""
        strongest = self._strongest()
        if strongest is None or self.sources is None or self.weights is None:
            return Sequence(self.x, self.padding_mask, lengths=lengths, global_vectors=unpooled.global_vectors)
        position, unit, marks, query = unpooled.position, unpooled.unit, unpooled.marks, unpooled.query
        return Sequence(
            self.x,
            self.padding_mask,
            None if position is None else position.gather(1, strongest),
            lengths,
            None if unit is None else unit.gather(1, strongest).masked_fill(self.padding_mask, -1),
            None if marks is None else marks.handed_on(strongest, self.padding_mask),
            None if query is None else query.handed_on(strongest, self.padding_mask),
            unpooled.roles,
            None if unpooled.origins is None else unpooled.origins.pooled(self.sources, self.weights),
            key_bias=self._bias(unpooled.key_bias, strongest),
            global_vectors=unpooled.global_vectors,
        )

    def _bias(self, before: Tensor | None, strongest: Tensor) -> Tensor | None:
        """Add what was there before the pooling, of the strongest members (B, K), to `key_bias`."""
        if before is None:
            return self.key_bias
        before = before.gather(1, strongest).masked_fill(self.padding_mask, 0.0)
        return before if self.key_bias is None else before + self.key_bias

    def _strongest(self) -> Tensor | None:
        """Return which input is the strongest member of each vector: (B, K); None without provenance."""
        if self.weights is None or self.sources is None:
            return None
        return self.sources.gather(-1, self.weights.argmax(dim=-1, keepdim=True)).squeeze(-1)


class Pooler(nn.Module, ABC):
    """Shortens a sequence of representations."""

    #: the kind of upsampling that belongs to the pooling as published, or None
    upsampling: ClassVar[str | None] = None
    #: whether `Pooled.sources` tells what the vectors are made of
    has_provenance: ClassVar[bool] = True
    #: whether it takes a ``scorer``, pools by a fixed ratio of ``window`` positions to one, or runs a ``layer``
    takes_scorer: ClassVar[bool] = False
    takes_window: ClassVar[bool] = False
    takes_layer: ClassVar[bool] = False
    #: whether `Pooled.key_bias` may be set
    biases_keys: ClassVar[bool] = False
    #: whether a vector of the query is still one afterwards: noise, or a softmax over all vectors, leaves little of it
    keeps_queries: ClassVar[bool] = True
    #: options that pool a text to the most vectors
    most: ClassVar[Mapping[str, float]] = {}
    #: whether it reads `Sequence.unit`
    reads_units: ClassVar[bool] = False
    #: whether what it hands on tells which unit comes first
    numbers_units: bool = False
    #: whether it reads `Sequence.roles`
    reads_roles: bool = False

    @abstractmethod
    def forward(self, sequence: Sequence, context: PoolingContext) -> Pooled:
        """Pool ``sequence`` of L positions to at most K vectors a document."""

    def kept(self, length: int) -> int | None:
        """Return how many vectors a document of ``length`` positions is pooled to, with padding after them; or None.

        Then `Pooled.lengths` tells, or else the encoder reads masks, for which it waits for a GPU.
        """
        return None


class WindowPooler(Pooler):
    """Pools windows of positions, each to one vector.

    From one ``window`` to the next it is the configured length over the configured k, whatever a batch's length.
    """

    takes_window = True

    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def kept(self, length: int) -> int:
        return -(-length // self.window)


def selected(x: Tensor, kept: Tensor, most: int) -> tuple[Pooled, Tensor]:
    """Select vectors (B, L, D) where ``kept`` (B, L), in their order, of each document the first ``most``.

    The host waits for a GPU once. Returns them, and their sources as (B, K).
    """
    highest = [min(most, kept.size(1))] * len(kept)
    lengths: list[int] = kept.sum(dim=1).clamp(max=most).tolist() if has_values(kept) else highest
    # What is kept comes before all others, in its order: (B, L) -> (B, K)
    sources = (~kept).byte().argsort(dim=1, stable=True)[:, : max([1, *lengths])]
    padding_mask = ~kept.gather(1, sources)
    x = x.gather(1, sources[..., None].expand(-1, -1, x.size(-1))).masked_fill(padding_mask[..., None], 0.0)
    # (B, K) -> (B, K, 1)
    weights = (~padding_mask)[..., None].to(x.dtype)
    return Pooled(x, padding_mask, sources[..., None], weights, lengths), sources


POOLING: Registry[Pooler] = Registry("pooling")
