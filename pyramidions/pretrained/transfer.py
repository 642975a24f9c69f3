"""Gives a model of ours the weights of a pretrained one, whose architecture may differ."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from pyramidions.base.errors import UserError
from pyramidions.models import PyramidionConfig
from pyramidions.nn import Transformer
from pyramidions.pretrained.names import POSITIONS
from pyramidions.pretrained.saved_model import summarizer_of
from pyramidions.text.tokenizer import Tokenizer


@dataclass
class Transfer:
    """What became of the weights, by our names."""

    taken: list[str] = field(default_factory=list)  # as they were
    # Tables of positions that were copied to be longer, each with its old and its new length.
    extended: dict[str, tuple[int, int]] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)  # initialised here
    dropped: list[str] = field(default_factory=list)  # that the model has no place for


def transferred(
    weights: dict[str, Tensor], config: PyramidionConfig, max_target_positions: int, tokenizer: Tokenizer, seed: int = 1
) -> tuple[Transformer, Transfer]:
    """Build a model, and give it the weights of `pretrained_weights` that it has a place for.

    Positions are copied to a longer table, as LED's are from BART's (Beltagy et al. 2020, section 7.1). Second
    projections, of global positions, start as copies of the first. What is initialised has a seed. A weight of another
    shape is refused, and so is a table of positions that would have to shrink.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = summarizer_of(config, tokenizer, max_target_positions).eval()
    done, given = Transfer(), dict(weights)
    for name, own in model.state_dict().items():
        # An output that points has the vocabulary's inside.
        value = given.pop(name if name in given else name.replace("output.vocabulary.", "output."), None)
        if value is None:
            value = weights.get(name.replace(".global_rows.", "."))
            done.new.append(name)
        elif name in POSITIONS and len(own) != len(value):
            done.extended[name] = (len(value), len(own))
            value = extended(value, len(own))
        else:
            done.taken.append(name)
        if value is None:
            continue
        if value.shape != own.shape:
            raise UserError(f"{name} must be {tuple(own.shape)} in the model asked for, but is {tuple(value.shape)}.")
        own.copy_(value)
    done.dropped = list(given)
    return model, done


def extended(table: Tensor, rows: int) -> Tensor:
    """Return a table of positions with more rows, which are copies of its own; it cannot shrink."""
    if rows < len(table):
        raise UserError(f"The pretrained model has {len(table)} positions, and they cannot shrink to {rows}.")
    return table.repeat(-(-rows // len(table)), 1)[:rows]
