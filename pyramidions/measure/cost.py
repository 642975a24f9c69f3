"""What a model costs: multiplications and memory of a training step by part, and parameters."""

from typing import Any, NamedTuple

import torch

from pyramidions.errors import UserError
from pyramidions.measure.counter import PartCounter
from pyramidions.measure.parts import Part
from pyramidions.measure.pretended_gpu import pretended_gpu
from pyramidions.models import PyramidionConfig, build
from pyramidions.nn import Transformer


class Lengths(NamedTuple):
    """A batch of full-length documents and their summaries.

    Attributes:
        source: L, tokens of each document.
        target: T, tokens of each summary.
        batch: B.
        vocab_size: V.
    """

    source: int = 8192
    target: int = 512
    batch: int = 1
    vocab_size: int = 32768

    def check(self) -> None:
        """Raise UserError where one is below 1."""
        for name, value in self._asdict().items():
            if value < 1:
                raise UserError(f"`{name}` must be at least 1, but is {value}.")


class Cost(NamedTuple):
    """What a batch of full-length documents costs.

    Multiplications are those of one forward pass as in training: all target tokens at once, no cache. A training step
    commonly counts three times as many; PoWER's scorer, which has no gradient, costs less. Causal attention is counted
    whole, although half of it is masked. Work on single values (softmax, normalisation, activations, positions, the
    scores of a tournament, a mean's division) is left out.

    Activations are what a training step keeps for its backward pass, parameters excluded: in float32, with fused
    attention, and with a byte for each value that dropout looks at. A tensor that several operators keep is counted
    once, for the part that keeps it first. Short-lived buffers, gradients and the optimizer's state come on top.

    Attributes:
        lengths: of the batch.
        products: multiplications in matrix products, by part.
        weighted: multiplications of vectors with weights outside of matrix products, by part: soft pooling.
        activations: bytes, by part.
        parameters: of the model; embeddings that the output layer shares count once.
    """

    lengths: Lengths
    products: dict[Part, int]
    weighted: dict[Part, int]
    activations: dict[Part, int]
    parameters: int

    def multiplications(self) -> dict[Part, int]:
        """Return all multiplications, by part."""
        return {part: self.products[part] + self.weighted[part] for part in Part}

    def total(self) -> int:
        """Return the number of all multiplications."""
        return sum(self.multiplications().values())

    def as_json(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        return {
            "lengths": self.lengths._asdict(),
            "matrix_products": self.products,
            "weighted_sums": sum(self.weighted.values()),
            "multiplications": self.total(),
            "activation_bytes": self.activations,
            "parameters": self.parameters,
        }


def cost_of(config: PyramidionConfig, lengths: Lengths) -> Cost:
    """Count what a config costs: the model runs as on a GPU, but on tensors that have a shape and no memory.

    Args:
        config: the model's shape.
        lengths: of the batch.

    Raises:
        UserError: a config that breaks a rule, a length below 1, or a model whose work depends on what it reads.
    """
    lengths.check()
    try:
        with pretended_gpu():
            return cost_of_run(build(config, lengths.vocab_size).train(), lengths)
    except RuntimeError as error:
        # Without memory there are no values to look at.
        if isinstance(error, NotImplementedError) or "meta tensor" in str(error):
            raise UserError(f"What this model costs depends on the values that it reads: {error}") from error
        raise


def cost_of_run(model: Transformer, lengths: Lengths) -> Cost:
    """Count what a model costs while it computes the loss of random tokens, none of them padding.

    Args:
        model: in training mode.
        lengths: of the batch.
    """
    source, prefix, target = (
        torch.randint(model.padding_idx + 1, lengths.vocab_size, (lengths.batch, length))
        for length in (lengths.source, lengths.target, lengths.target)
    )
    counter = PartCounter(model)
    with counter.counting():
        encoded = model.encoder(source, source.eq(model.padding_idx), [lengths.source] * lengths.batch)
        features = model.decoder.features(prefix, encoded.memory, encoded.attention_mask)
        counter.enter(Part.OUTPUT)
        log_probs = model.decoder.logits(features).log_softmax(dim=-1)
        log_probs.gather(-1, target[..., None]).sum()
        counter.leave()
    products, weighted, kept = (
        {part: counts[part] for part in Part} for counts in (counter.products, counter.weighted, counter.kept)
    )
    return Cost(lengths, products, weighted, kept, sum(parameter.numel() for parameter in model.parameters()))
