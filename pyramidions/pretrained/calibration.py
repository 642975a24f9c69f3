"""Lets the scores of an imported model spread: by the statistics of its norms, or on real documents."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from pyramidions.nn import Encoder
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.scorer import LinearScorer, LogitScorer
from pyramidions.pretrained.saved_model import SavedModel

#: Variance of the logits of a fresh scorer, as from scratch, so that most pairs of a tournament are decided.
VARIANCE = 2.0


class Calibrated(NamedTuple):
    """A scorer whose last layer was scaled; the mean and the variance of its logits before."""

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
    earlier ones let through. Each takes a pass over all texts; some texts suffice, as each vector of them counts.

    A scorer without a last linear layer is left alone, and so is one whose logits do not vary.
    """
    done = []
    for name, scorer in calibrated_scorers(model).items():
        with _logits_of(scorer) as logits:
            for text in texts:
                tokens = torch.tensor([model.source_ids(text)])
                model.transformer.encoder(tokens, tokens.eq(model.tokenizer.pad))
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


def _scale(scorer: LogitScorer, mean: float, variance: float) -> None:
    factor = (VARIANCE / variance) ** 0.5
    scorer.linear.weight *= factor
    scorer.linear.bias.copy_((scorer.linear.bias - mean) * factor)


def spread_scores(encoder: Encoder, new: set[str]) -> list[str]:
    """Scale the weights of fresh linear scorers, in place, so that the logits of a layer's output vary by `VARIANCE`.

    A post-norm layer ends in a norm with gains g and biases b, whose output has about the mean b and the variance g
    squared in each of its dimensions. With weights w the logits then have the variance of the sum of (w g) squared, and
    the mean of the sum of w b, which the scorer's bias takes away. No document is needed. A pre-norm layer ends in a
    sum, whose statistics only documents tell: its scorers stay as they are, and `calibrate` scales them. A
    scorer with a norm of its own reads the output of that one, whatever the layer. Of the encoder's weights only the
    new ones are scaled; their names are returned.
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
    return last.norm if isinstance(last.norm, nn.LayerNorm) and not last.normalize_before else None
