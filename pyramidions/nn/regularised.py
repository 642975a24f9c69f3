"""Parts with a loss of their own, which training adds to that of the task."""

from typing import Any

from torch import Tensor, nn


class Regularised:
    """A module whose own loss training adds to the loss of each token, or of whatever else a criterion averages."""

    #: that of the last training pass, until it is read
    _loss: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the loss out of copies: they have no part in its graph."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_loss"}

    def regulariser(self) -> Tensor | None:
        """Return the loss, a scalar with a gradient, once: its graph is then free. None if there is none."""
        loss, self._loss = self._loss, None
        return loss


def regulariser_of(model: nn.Module) -> Tensor | None:
    """Return the sum of the own losses of all parts of a model; None if no part has one."""
    regularisers = [part.regulariser() for part in model.modules() if isinstance(part, Regularised)]
    losses = [loss for loss in regularisers if loss is not None]
    return sum(losses[1:], losses[0]) if losses else None
