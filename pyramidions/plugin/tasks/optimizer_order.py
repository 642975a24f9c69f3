"""Resume a run whose checkpoint lists the parameters in another order than the model.

A checkpoint names its weights, but an optimizer's state goes by the place of a parameter among all parameters: a number
for each, or a stretch of one flat tensor. A release that builds the same model from other modules changes that order.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class ParameterOrder(NamedTuple):
    """Where the checkpoint has what the model has.

    Attributes:
        sizes: number of values of each trained parameter, in the model's order.
        places: the place of each among the trained parameters of the checkpoint.
    """

    sizes: list[int]
    places: list[int]

    @classmethod
    def of(cls, model: nn.Module, names: Iterable[str]) -> "ParameterOrder":
        """Compare a model with a checkpoint; a parameter that several modules share counts where it comes first.

        Args:
            model: the model.
            names: of the checkpoint's weights, by the model's names and in the checkpoint's order; also of buffers.

        Raises:
            KeyError: the checkpoint lacks a trained parameter.
        """
        named = dict(model.named_parameters(remove_duplicate=False))
        given = dict.fromkeys(named[name] for name in names if name in named and named[name].requires_grad)
        place = {parameter: i for i, parameter in enumerate(given)}
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return cls([parameter.numel() for parameter in trained], [place[parameter] for parameter in trained])

    def restore(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return an optimizer's state in the model's order.

        What belongs to parameters behind those of the model, such as a criterion's, stays where it is.

        Args:
            state: as ``torch.optim.Optimizer.state_dict`` returns it, in the checkpoint's order: either one entry a
                parameter, or one for all of them, whose tensors hold every parameter one after another, as fairseq's
                ``--fp16`` does.
        """
        entries: dict[int, dict[str, Any]] = state["state"]
        if sum(len(group["params"]) for group in state["param_groups"]) == 1 < len(self.sizes):
            flat = {i: {name: self._flat(value) for name, value in entry.items()} for i, entry in entries.items()}
            return {**state, "state": flat}
        moved = {i: entries[place] for i, place in enumerate(self.places) if place in entries}
        rest = {i: entry for i, entry in entries.items() if i >= len(self.places)}
        return {**state, "state": {**moved, **rest}}

    def _flat(self, value: Any) -> Any:
        # The number of steps is no tensor, or one without dimensions.
        if not isinstance(value, Tensor) or value.dim() == 0:
            return value
        given = [size for _, size in sorted(zip(self.places, self.sizes, strict=True))]
        # (N + rest,) -> a stretch for each parameter, and the rest
        *stretches, rest = value.split([*given, value.numel() - sum(given)])
        return torch.cat([*(stretches[place] for place in self.places), rest])


class ResumedOrder:
    """Puts the optimizer's state of a resumed run into the model's order.

    fairseq loads the state right after it has built the optimizer, so that it cannot be reordered before; until the
    first update nothing reads it.

    Args:
        model: a model whose weights may be loaded from a checkpoint. Whatever renames them must keep their order.
    """

    def __init__(self, model: nn.Module) -> None:
        self._order: ParameterOrder | None = None
        model.register_load_state_dict_pre_hook(self._take_note)

    def _take_note(self, model: nn.Module, state_dict: dict[str, Tensor], *unused: Any) -> None:
        self._order = ParameterOrder.of(model, state_dict)

    def restore(self, optimizer: Any) -> None:
        """Reorder, once, the state of fairseq's optimizer, if a checkpoint of another order was loaded into it."""
        order, self._order = self._order, None
        if order is None or order.places == sorted(order.places):
            return
        state = optimizer.state_dict()
        # Without a state, as with --reset-optimizer, there is nothing to reorder.
        if state["state"]:
            optimizer.load_state_dict(order.restore(state))
