"""Builds a model from settings and weights that come from outside."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import Tensor, nn

from pyramidions.base.errors import UserError
from pyramidions.base.parts import MissingPartError
from pyramidions.models.builder import shapes_alone


@contextmanager
def building(path: Path) -> Iterator[None]:
    """Build a model without memory, since damaged settings may ask for any amount of it.

    Args:
        path: of the model, for the error.

    Raises:
        UserError: the settings break a rule, or a part of the model was not imported.
    """
    try:
        with shapes_alone():
            yield
    except MissingPartError as error:
        raise MissingPartError(f"{path}: {error}") from None
    except UserError as error:
        raise UserError(f"The settings of {path} are damaged: {error}") from None


def fill(network: nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Give a model its weights, in evaluation mode and in float32.

    Args:
        network: the model.
        weights: by name.
        path: where they come from, for the error.

    Raises:
        UserError: they do not fit.
    """
    expected = network.state_dict(keep_vars=True)
    # What parts of a model share may have one name in a file.
    known = {id(value): weights[name] for name, value in expected.items() if name in weights}
    weights = {name: known[id(value)] for name, value in expected.items() if id(value) in known} | weights
    head = f"The weights of {path} do not fit its settings:"
    for name in [*expected, *weights]:
        if name not in weights:
            raise UserError(f"{head} {name} is missing.")
        if name not in expected:
            raise UserError(f"{head} {name} has no place in the model.")
        if (given := tuple(weights[name].shape)) != (shape := tuple(expected[name].shape)):
            raise UserError(f"{head} {name} must be {shape}, but is {given}.")
        # Buffers may hold whole numbers, such as counters.
        if weights[name].is_floating_point() != expected[name].is_floating_point():
            kind = "floating-point" if expected[name].is_floating_point() else "whole"
            raise UserError(f"{head} {name} must be {kind} numbers, but is {weights[name].dtype}.")
    network.load_state_dict(weights, assign=True)
    # A part that keeps values which are no weights would compute with none: a mistake of the part, not of the file.
    for name, values in network.named_buffers():
        if values.is_meta:
            raise RuntimeError(f"{name} must be saved with the weights or computed when it is needed, but is neither.")
    network.float().eval()
