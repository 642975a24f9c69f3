"""What a model costs: multiplications and memory of a training step by part, and parameters."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pyramidions.base.arguments import Count, check_fields
from pyramidions.base.errors import UserError
from pyramidions.models import PyramidionConfig, build
from pyramidions.models.config import MAX_TARGET_POSITIONS
from pyramidions.nn import Transformer
from pyramidions.nn.attention import SegmentsAttention
from pyramidions.runs.measure.counter import CostPart, PartCounter

_MARKER = 3
_META = torch.device("meta")
_READS_DEVICE = Tensor.device.__get__


class Lengths(NamedTuple):
    """A batch of full-length documents and their summaries."""

    source: Count = 8192  # L, tokens of each document
    target: Count = 512  # T, tokens of each summary
    batch: Count = 1  # B
    vocab_size: Count = 32768  # V


class Cost(NamedTuple):
    """What a batch of full-length documents costs.

    Multiplications are those of one forward pass as in training: all target tokens at once, no cache. A training step
    commonly counts three times as many; PoWER's scorer, which has no gradient, costs less. Causal attention is counted
    whole, although half of it is masked. Work on single values (softmax, normalisation, activations, positions, the
    scores of a tournament, a mean's division) is left out.

    Activations are what a training step keeps for its backward pass, parameters excluded: in float32, with fused
    attention, and with a byte for each value that dropout looks at. A tensor that several operators keep is counted
    once, for the part that keeps it first. Short-lived buffers, gradients and the optimizer's state come on top.
    """

    lengths: Lengths  # of the batch
    products: dict[CostPart, int]  # multiplications in matrix products, by part
    # Multiplications of vectors with weights outside of matrix products, by part: soft pooling.
    weighted: dict[CostPart, int]
    activations: dict[CostPart, int]  # bytes, by part
    parameters: int  # of the model; embeddings that the output layer shares count once

    def multiplications(self) -> dict[CostPart, int]:
        return {part: self.products[part] + self.weighted[part] for part in CostPart}

    def total(self) -> int:
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
    """Count what a config costs: the model runs as on a GPU, but on tensors that have a shape and no memory."""
    check_fields(lengths)
    try:
        with _pretended_gpu():
            return cost_of_run(model_of(config, lengths), lengths)
    except RuntimeError as error:
        # Without memory there are no values to look at.
        if isinstance(error, NotImplementedError) or "meta tensor" in str(error):
            raise UserError(f"What this model costs depends on the values that it reads: {error}") from error
        raise


def model_of(config: PyramidionConfig, lengths: Lengths) -> Transformer:
    """Return a model to be counted, in training mode."""
    longest = max(lengths.target, MAX_TARGET_POSITIONS)
    return build(config, lengths.vocab_size, marker_idx=_MARKER, max_target_positions=longest).train()


def cost_of_run(model: Transformer, lengths: Lengths) -> Cost:
    """Count what a model costs while it computes the loss of random tokens, without padding and without queries.

    Of a model that pools at markers it is the most that a text may cost: a sentence starts at each token or, with
    attention inside units, where a segment may. Of any other, a document is one unit. Discourse attention counts as
    many sections as it tells apart.
    """
    first = 1 + max(_MARKER, model.padding_idx, model.encoder.structure_of.separator or 0)
    if lengths.vocab_size <= first:
        raise UserError(f"`vocab_size` must be at least {first + 1}, but is {lengths.vocab_size}.")
    # Of a model that copies it is the most that a text may cost: its tokens differ.
    source = (torch.arange(lengths.source) % (lengths.vocab_size - first) + first).repeat(lengths.batch, 1)
    prefix, target = (torch.randint(first, lengths.vocab_size, (lengths.batch, lengths.target)) for _ in range(2))
    if any(pooler.reads_units for pooler in model.encoder.poolers.values()):
        source[:, :: _longest_segment(model)] = _MARKER
    counter = PartCounter(model)
    with counter.counting():
        encoded = model.encoder(source, source.eq(model.padding_idx), [lengths.source] * lengths.batch)
        features = model.decoder.features(prefix, encoded.memories)
        counter.enter(CostPart.OUTPUT)
        log_probs = model.decoder.logits(features, encoded.memories).log_softmax(dim=-1)
        log_probs.gather(-1, target[..., None]).sum()
        counter.leave()
    products, weighted, kept = (
        {part: counts[part] for part in CostPart} for counts in (counter.products, counter.weighted, counter.kept)
    )
    return Cost(lengths, products, weighted, kept, sum(parameter.numel() for parameter in model.parameters()))


def _longest_segment(model: Transformer) -> int:
    """Return the positions of the longest segment within which attention stays; 1 where none does."""
    segments = (module for module in model.encoder.modules() if isinstance(module, SegmentsAttention))
    return max((segment.segment_length for segment in segments), default=1)


@contextmanager
def _pretended_gpu() -> Iterator[None]:
    """Keep new tensors on the meta device: they have a shape but no memory, and operators compute nothing.

    Tensors say that they are on a GPU, so that code which asks takes the GPU's path. Attention is fused and dropout
    keeps a mask of bytes, as they are there: without this, the meta device would take slower paths that keep more.
    """
    with _META, _LikeAGpu():
        yield


class _LikeAGpu(TorchFunctionMode):
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func == _READS_DEVICE:
            return torch.device("cuda", 0)
        args = tuple(_META if isinstance(value, torch.device) else value for value in args)
        kwargs = {name: _META if name == "device" else value for name, value in (kwargs or {}).items()}
        if func is F.scaled_dot_product_attention:
            return _fused_attention(*args, **kwargs)
        if func is F.dropout:
            return _dropout(*args, **kwargs)
        return func(*args, **kwargs)


def _fused_attention(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False
) -> Tensor:
    """Attend without holding the weights; the kernel drops some of them without keeping a mask."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.empty_like(attn_mask, dtype=q.dtype)
    # torch has one such operator for each device. The CPU's keeps no more than it must: a GPU's may pad.
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return fused(q, k, v, 0.0, is_causal, attn_mask=attn_mask)[0]


def _dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.native_dropout(input, p, training)[0]
