"""Resume a run whose checkpoint lists the parameters in another order than the model.

A checkpoint names its weights, but an optimizer's state goes by the place of a parameter among all parameters: a number
for each, or a stretch of one flat tensor. A release that builds the same model from other modules changes that order.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn


class ParameterOrder(NamedTuple):
    """Where the checkpoint has what the model has.

    Attributes:
        sizes: number of values of each trained parameter, in the model's order.
        places: the place of each among the trained parameters of the checkpoint.
    """

    sizes: Sequence[int]
    places: Sequence[int]

    @property
    def is_same(self) -> bool:
        """Whether both orders are one."""
        return list(self.places) == list(range(len(self.places)))


def parameter_order(model: nn.Module, names: Iterable[str]) -> ParameterOrder:
    """Compare the order of a checkpoint's weights with that of a model's parameters.

    A parameter that several modules share counts where it comes first.

    Args:
        model: the model.
        names: of the checkpoint's weights, by the model's names and in the checkpoint's order; buffers are passed over.

    Raises:
        KeyError: the checkpoint lacks a trained parameter.
    """
    named = dict(model.named_parameters(remove_duplicate=False))
    given = dict.fromkeys(named[name] for name in names if name in named and named[name].requires_grad)
    place = {parameter: i for i, parameter in enumerate(given)}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return ParameterOrder([parameter.numel() for parameter in trained], [place[parameter] for parameter in trained])


def reordered(state: dict[str, Any], order: ParameterOrder) -> dict[str, Any]:
    """Return an optimizer's state as a model of another order needs it.

    What belongs to parameters behind those of the model, such as a criterion's, stays where it is.

    Args:
        state: as ``torch.optim.Optimizer.state_dict`` returns it, in the checkpoint's order: either one entry a
            parameter, or one for all of them, whose tensors hold every parameter one after another, as fairseq's
            ``--fp16`` does.
        order: the two orders.
    """
    entries: dict[int, dict[str, Any]] = state["state"]
    if sum(len(group["params"]) for group in state["param_groups"]) == 1 < len(order.sizes):
        flat = {i: {name: _flat(value, order) for name, value in entry.items()} for i, entry in entries.items()}
        return {**state, "state": flat}
    moved = {i: entries[place] for i, place in enumerate(order.places) if place in entries}
    rest = {i: entry for i, entry in entries.items() if i >= len(order.places)}
    return {**state, "state": {**moved, **rest}}


def _flat(value: Any, order: ParameterOrder) -> Any:
    total = sum(order.sizes)
    # The number of steps is no tensor, or one without dimensions.
    if not isinstance(value, Tensor) or value.dim() == 0:
        return value
    given = [0] * len(order.sizes)
    for size, place in zip(order.sizes, order.places, strict=True):
        given[place] = size
    # (N + rest,) -> a stretch for each parameter, and the rest
    *stretches, rest = value.split([*given, value.numel() - total])
    return torch.cat([*(stretches[place] for place in order.places), rest])


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
        self._order = parameter_order(model, state_dict)

    def restore(self, optimizer: Any) -> None:
        """Reorder, once, the state of fairseq's optimizer, if a checkpoint of another order was loaded into it."""
        order, self._order = self._order, None
        if order is None or order.is_same:
            return
        state = optimizer.state_dict()
        # Without a state, as with --reset-optimizer, there is nothing to reorder.
        if state["state"]:
            optimizer.load_state_dict(reordered(state, order))
