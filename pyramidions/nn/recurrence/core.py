"""The role of a recurrence, and the registry of kinds."""

from abc import abstractmethod

from torch import Tensor

from pyramidions.base.registry import Registry
from pyramidions.nn.functional.chunking import pad_to_multiple
from pyramidions.nn.sublayer import Carried, LayerContext, State, SublayerFunction


class Recurrence(SublayerFunction):
    """Passes over positions from the first to the last, beside the feed-forward part of a layer.

    It reads what enters the layer's sublayer, before any norm, and is added to what the feed-forward part adds. Padding
    is passed over, wherever it stands.

    Args:
        confined_to: the blocks within which the attention of the layer stays, at each of which the recurrence begins
            anew; None for no blocks.
    """

    def __init__(self, confined_to: int | None = None) -> None:
        super().__init__()
        self.confined_to = confined_to

    @abstractmethod
    def run(self, x: Tensor, padding_mask: Tensor | None, carried: Tensor | None) -> tuple[Tensor, Tensor]:
        """Pass over sequences.

        Args:
            x: (B, L, D).
            padding_mask: (B, L), True at positions to be passed over, or None.
            carried: (B, ...), from the positions before; None at the beginning.

        Returns:
            The output (B, L, D), and what is carried on.
        """

    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        padding_mask, length = context.padding_mask, x.size(1)
        if self.confined_to is None or length <= self.confined_to:
            return self.run(x, padding_mask, None)[0]
        # (B, L, D) -> (B * L/M, M, D) and back
        blocks = pad_to_multiple(x, self.confined_to, dim=1)
        if padding_mask is not None:
            padding_mask = pad_to_multiple(padding_mask, self.confined_to, dim=1, value=True)
            padding_mask = padding_mask.reshape(-1, self.confined_to)
        out, _ = self.run(blocks.reshape(-1, self.confined_to, x.size(2)), padding_mask, None)
        return out.view_as(blocks)[:, :length]

    def new_state(self) -> Carried:
        return Carried()

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        assert isinstance(state, Carried)
        # (B, WT, D) -> (BW, T, D) and back
        new = x.unflatten(1, (context.hypotheses, -1)).flatten(0, 1)
        out, state.value = self.run(new, context.new_padding_mask, state.value)
        return out.view_as(x)


RECURRENCE: Registry[Recurrence] = Registry("recurrence")
