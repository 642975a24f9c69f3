"""Lets fresh scorers begin with scores that spread, from the statistics of the layer before."""

from typing import cast

import torch
from torch import Tensor, nn

from pyramidions.nn import Encoder
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.scorer import LinearScorer

#: Variance of the logits of a fresh scorer: as many as from scratch, so that most pairs of a tournament are decided.
VARIANCE = 2.0


def spread_scores(encoder: Encoder, new: set[str]) -> list[str]:
    """Scale the weights of fresh linear scorers, in place, so that the logits of a layer's output vary by `VARIANCE`.

    A post-norm layer ends in a norm with gains g and biases b, whose output has about the mean b and the variance g
    squared in each of its dimensions. With weights w the logits then have the variance of the sum of (w g) squared, and
    the mean of the sum of w b, which the scorer's bias takes away. No document is needed. A pre-norm layer ends in a
    sum, of which nothing is known without documents: its scorers stay as they are, and `calibrate` scales them. A
    scorer with a norm of its own reads the output of that one, whatever the layer.

    Args:
        encoder: of the model.
        new: names of weights of the encoder that were initialised here; others are left alone.

    Returns:
        The names of the scorers' weights.
    """
    done = []
    for number, pooler in encoder.poolers.items():
        scorer = getattr(pooler, "scorer", None)
        name = f"poolers.{number}.scorer.linear"
        if not isinstance(scorer, LinearScorer) or f"{name}.weight" not in new:
            continue
        norm = scorer.norm or _last_norm(encoder, int(number))
        if norm is None:
            continue
        _spread(scorer.linear, norm.weight.detach(), norm.bias.detach())
        done.append(name)
    return done


@torch.no_grad()
def _spread(linear: nn.Linear, gain: Tensor, bias: Tensor) -> None:
    varying = (linear.weight * gain).square().sum()
    linear.weight *= (VARIANCE / varying.clamp_min(1e-12)).sqrt()
    linear.bias.copy_(-(linear.weight * bias).sum(dim=1))


def _last_norm(encoder: Encoder, layer: int) -> nn.LayerNorm | None:
    """Return the norm of a layer's output, if it has one."""
    *_, last = cast(Layer, encoder.layers[layer]).sublayers.values()
    assert isinstance(last, Sublayer)
    return None if last.normalize_before else last.norm
