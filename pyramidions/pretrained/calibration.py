"""Lets the scores of an imported model spread on real documents."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pyramidions.inference.saved_model import SavedModel
from pyramidions.nn import Encoder
from pyramidions.nn.scorer.core import LogitScorer
from pyramidions.pretrained.likelihood import truncated
from pyramidions.pretrained.poolers import VARIANCE
from pyramidions.text.tokenizer import PAD


class Calibrated(NamedTuple):
    """A scorer whose last layer was scaled.

    Attributes:
        name: of the scorer in the encoder.
        mean: of its logits before.
        variance: likewise.
    """

    name: str
    mean: float
    variance: float


def calibrated_scorers(model: SavedModel) -> dict[str, LogitScorer]:
    """Return the scorers that `calibrate` scales, by name and in the order of their layers."""
    scorers = {
        f"poolers.{number}.scorer": getattr(pooler, "scorer", None)
        for number, pooler in model.transformer.encoder.poolers.items()
    }
    return {name: scorer for name, scorer in scorers.items() if isinstance(scorer, LogitScorer)}


@torch.no_grad()
def calibrate(model: SavedModel, texts: Sequence[str]) -> list[Calibrated]:
    """Scale the last layers of scorers, in place, so that the logits of real vectors have mean 0 and `VARIANCE`.

    Unlike `spread_scores` this needs to know nothing of the layer before: it works for pre-norm models, and for scorers
    of several layers. One scorer after the other is scaled, since the vectors that a later one rates depend on what the
    earlier ones let through. Each takes a pass over all texts.

    Args:
        model: with fresh scorers.
        texts: documents such as it will read; some suffice, as each vector of them counts.

    Returns:
        The scorers, in the order of their layers. A scorer without a last linear layer is left alone, and so is one
        whose logits do not vary.

    Raises:
        ValueError: there is no text.
    """
    if not texts:
        raise ValueError("There must be a text.")
    done = []
    for name, scorer in calibrated_scorers(model).items():
        with _logits_of(scorer) as logits:
            for text in texts:
                _encode(model.transformer.encoder, model, text)
        variance, mean = torch.var_mean(torch.cat(logits), correction=0)
        if variance > 0:
            _scale(scorer, float(mean), float(variance))
            done.append(Calibrated(name, float(mean), float(variance)))
    return done


@contextmanager
def _logits_of(scorer: LogitScorer) -> Iterator[list[Tensor]]:
    """Collect the logits of all real vectors that a scorer rates, a batch at a time: (N,), in float64."""
    found: list[Tensor] = []

    def collect(_: object, given: tuple[Any, ...]) -> None:
        sequence, _context = given
        found.append(scorer.logits(sequence.x)[~sequence.padding_mask].double())

    handle = scorer.register_forward_pre_hook(collect)
    try:
        yield found
    finally:
        handle.remove()


def _encode(encoder: Encoder, model: SavedModel, text: str) -> None:
    tokens = torch.tensor([truncated(model.tokenizer, text, model.max_source_positions, "max_source_positions")])
    encoder(tokens, tokens.eq(PAD))


def _scale(scorer: LogitScorer, mean: float, variance: float) -> None:
    factor = (VARIANCE / variance) ** 0.5
    scorer.linear.weight *= factor
    scorer.linear.bias.copy_((scorer.linear.bias - mean) * factor)
