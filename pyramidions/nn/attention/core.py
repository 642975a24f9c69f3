"""The role of an attention kind, and the registry of kinds."""

from abc import ABC, abstractmethod
from inspect import isabstract, signature
from typing import ClassVar

from torch import Tensor, nn

from pyramidions.base.registry import Registry
from pyramidions.nn.projections import Projections
from pyramidions.nn.sublayer import State


class CoreAttention(nn.Module, ABC):
    """What happens between projected heads: queries, keys and values in, mixed values out."""

    #: whether queries and keys are one projection
    shares_query_key: ClassVar[bool] = False
    #: whether queries may come from another sequence than keys
    crosses: ClassVar[bool] = True
    #: whether queries must come from another sequence than keys
    crosses_only: ClassVar[bool] = False
    #: whether it can be made to see earlier positions only
    can_be_causal: ClassVar[bool] = True
    #: whether the mask may differ from query to query
    masks_by_query: ClassVar[bool] = False
    #: options that are numbers of positions
    lengths: ClassVar[tuple[str, ...]] = ()
    #: positions interact only within blocks of this many, counted from the first; None for no such limit
    confined_to: int | None = None
    #: the most positions that its weights are made for; None for any number
    longest: int | None = None

    @abstractmethod
    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        key_padding_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        """Attend.

        Args:
            q: (B, H, Lq, E).
            k: (B, H, Lk, E).
            v: (B, H, Lk, E).
            key_padding_mask: (B, Lk), True at padding, or None; or the mask that `keys_values` returned. A kind that
                `masks_by_query` also takes (B, Lq, Lk), True at keys that a query must not see, and, unless causal, the
                `as_bias` of either mask.
            is_causal: query i sees keys up to i; the last query sees every key.

        A kind that reads more of the text names it as a further keyword, None by default, and in `received`, too:
        ``marks``, which it shows to all positions (what those see themselves is computed around it), or ``units``,
        inside of which it stays.

        Returns:
            (B, H, Lq, E), finite everywhere; meaningless at queries that are padding, and at marked ones.

        Raises:
            ValueError: the kind's traits exclude these arguments.
        """

    @classmethod
    def takes(cls, what: str) -> bool:
        """Return whether the kind reads ``what`` of the text: "marks" or "units"."""
        return what in signature(cls.forward).parameters

    @classmethod
    def tells(cls, what: str) -> bool:
        """Return whether the kind has ``what``: "received", "weights", "across" or "step"."""
        # A role, which is abstract, has a method of that name that only refuses.
        return not isabstract(next(base for base in cls.__mro__ if what in vars(base)))

    def refuse(self, q: Tensor, k: Tensor, is_causal: bool) -> None:
        """Raise ValueError if the kind cannot attend from queries (B, H, Lq, E) to keys (B, H, Lk, E)."""
        if not self.crosses and q.size(2) != k.size(2):
            raise ValueError(
                f"{type(self).__name__} needs as many keys as queries, but {k.size(2)} keys met {q.size(2)} queries."
            )
        if is_causal and not self.can_be_causal:
            raise ValueError(f"{type(self).__name__} cannot be causal.")

    def keys_values(
        self, projections: Projections, memory: Tensor, padding_mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Project a memory to what queries read of it; a decoder keeps that between steps.

        By default it is all of the memory.

        Args:
            projections: of the memory.
            memory: (B, K, D).
            padding_mask: (B, K), True at padding, or None; of a kind that `masks_by_query` its `as_bias`, too.

        Returns:
            Keys and values, (B, H, Lk, E) each, and the mask that `forward` and `weights` take with them.
        """
        return *projections.keys_values(memory), padding_mask

    def spread(self, weights: Tensor, padding_mask: Tensor) -> Tensor:
        """Return over all of a memory what `weights` says of the keys that `keys_values` made of it.

        Args:
            weights: (B, H, Lq, Lk).
            padding_mask: (B, K), True at padding of the memory.

        Returns:
            (B, H, Lq, K), zero at what a head does not read.
        """
        return weights

    def new_state(self) -> State:
        """Return the state before the first `step`.

        Raises:
            ValueError: the kind has no steps.
        """
        raise ValueError(f"{type(self).__name__} cannot attend from new positions to kept ones.")

    def step(self, q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None, state: State) -> Tensor:
        """Attend, causally, from the positions that follow those in ``state``, and extend it in place.

        Steps give what one pass over the whole of a hypothesis gives.

        Args:
            q: (B, H, WT, E), of the T new positions of each of the W hypotheses of a document.
            k: (B, H, WT, E).
            v: (B, H, WT, E).
            blocked: (B, 1, WT, S), the `as_bias` of which of all written positions, the new ones among them, each query
                must not see: those of other hypotheses, and later ones; None where nothing is blocked.
            state: from `new_state`.

        Returns:
            (B, H, WT, E).

        Raises:
            ValueError: the kind has no steps.
        """
        raise ValueError(f"{type(self).__name__} cannot attend from new positions to kept ones.")

    def across(self) -> "CoreAttention":
        """Return the attention by which other queries read the same keys, of one block if there are blocks.

        Raises:
            ValueError: the kind has none.
        """
        raise ValueError(f"{type(self).__name__} reads no keys but those of its own queries.")

    def received(self, q: Tensor, k: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Return how much self-attention each position received, over all heads and real queries.

        No L x L matrix is ever held in memory.

        Args:
            q: (B, H, L, E).
            k: (B, H, L, E).
            padding_mask: (B, L), True at padding, or None.

        Returns:
            (B, L), zero at padding.

        Raises:
            ValueError: the kind cannot tell.
        """
        raise ValueError(f"{type(self).__name__} cannot tell how much attention a position received.")

    def weights(self, q: Tensor, k: Tensor, key_padding_mask: Tensor | None = None) -> Tensor:
        """Return how much each query attends to each key, without dropout.

        Args:
            q: (B, H, Lq, E).
            k: (B, H, Lk, E).
            key_padding_mask: as in `forward`.

        Returns:
            (B, H, Lq, Lk) in float32; each row sums to 1.

        Raises:
            ValueError: the kind cannot tell.
        """
        raise ValueError(f"{type(self).__name__} cannot tell how much a query attends to each key.")


ATTENTION: Registry[CoreAttention] = Registry("attention")
