"""The role of what a layer is made of: self-attention, cross-attention, a feed-forward part."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from torch import Tensor, nn

#: is shown what a function reads
Watcher = Callable[[Tensor], None]
NOBODY: Mapping[nn.Module, Watcher] = MappingProxyType({})


class LayerContext(NamedTuple):
    """What sublayers read beside their own input, the same for all layers of a stack.

    Attributes:
        padding_mask: (B, L), True at padding, of the layers' own input; or None. In a cached step what a position must
            not see of all that is written, as an attention kind that masks by query takes it.
        memory: (B, K, D), what cross-attention reads; None where there is none.
        memory_padding_mask: (B, K), True at padding, or what `as_bias` makes of it, or None.
        watchers: called with what that function reads, (B, L, D), without gradients, in each pass over its layer.
    """

    padding_mask: Tensor | None = None
    memory: Tensor | None = None
    memory_padding_mask: Tensor | None = None
    watchers: Mapping[nn.Module, Watcher] = NOBODY


class State(ABC):
    """What one sublayer keeps between cached steps."""

    @abstractmethod
    def reorder(self, order: Tensor, documents: Tensor | None) -> None:
        """Keep the hypotheses ``order`` (B'W',) of the documents ``documents`` (B',), in that order.

        None keeps all documents. A state that the hypotheses of a document share follows the documents alone.
        """


class SublayerFunction(nn.Module, ABC):
    """What a sublayer computes; norm, dropout and the residual connection stand around it, in `Sublayer`."""

    @abstractmethod
    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        """Compute on whole sequences: (B, L, D) -> (B, L, D)."""

    def new_state(self) -> State | None:
        """Return what cached steps start from; None where they need nothing of earlier ones."""
        return None

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        """Compute on what follows all that ``state`` holds, and extend it in place.

        Args:
            x: (B, WT, D), of each document the T new positions of its W hypotheses.
            context: of this step.
            state: as `new_state` made it.

        Returns:
            (B, WT, D).
        """
        return self(x, context)
