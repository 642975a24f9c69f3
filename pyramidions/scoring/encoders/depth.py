"""How many layers an encoder has, and a config of one that has fewer."""

from typing import Any

from pyramidions.base.errors import UserError

# As families of models call it; aliases of each other in some.
_FIELDS = ("encoder_layers", "num_encoder_layers", "num_hidden_layers")


def depth(config: Any) -> int:
    """Return the number of layers of an encoder, or of the encoder of an encoder-decoder."""
    return int(next(found for name in _FIELDS if (found := getattr(config, name, None)) is not None))


def keep_layers(config: Any, layers: int, place: str) -> None:
    """Make a config that of a model with its first layers only: what is above them need not be computed.

    Args:
        config: of the model; changed in place.
        layers: how many to keep.
        place: of the model, for the error.

    Raises:
        UserError: the model has fewer.
    """
    total = depth(config)
    if not 1 <= layers <= total:
        raise UserError(f"`embedding_layer` must be from 1 to {total}, the layers of {place}, but is {layers}.")
    for name, value in list(vars(config).items()):
        # One entry a layer, such as the windows of Longformer.
        if isinstance(value, list) and len(value) == total:
            setattr(config, name, value[:layers])
    for name in _FIELDS:
        if getattr(config, name, None) is not None:
            setattr(config, name, layers)
