"""Networks whose weights take fewer bits, for computing without gradients."""

import copy
from collections.abc import Iterator
from typing import TypeVar

import torch
from torch import Tensor, nn

from pyramidions.nn.attention import CoreAttention
from pyramidions.nn.boundaries import Boundaries
from pyramidions.nn.decoder import Decoder
from pyramidions.nn.feed_forward.sparse import ChosenUnits
from pyramidions.nn.output import Output, Pointer, PointerOutput, TiedOutput
from pyramidions.nn.pooling.delete_gate import DeleteGatePooler
from pyramidions.nn.projections.dense import HeadsLinear, rows_of_heads
from pyramidions.nn.recurrence import Recurrence
from pyramidions.nn.scorer import Scorer
from pyramidions.nn.selector import Selector

Network = TypeVar("Network", bound=nn.Module)
_ROWS = 512  # that are multiplied at a time: their products stay in the cache until they are scaled
_FEW = 16  # outputs; a layer with fewer decides or rates
#: Parts that decide by scores; those of a pooler are its gate and its boundaries.
DECIDING = (Scorer, Selector, Boundaries, DeleteGatePooler)
#: Parts that decide, sum over a document, or read their weights without multiplying by them.
_IN_FLOAT32 = (*DECIDING, Pointer, Recurrence, ChosenUnits, CoreAttention)


class Int8Linear(nn.Module):
    """A linear layer with weights of 8 bits.

    Each row of the weights, and each input vector while it is read, is divided by its largest number and rounded to
    whole numbers (dynamic quantization). Their products are exact; sums, bias and output are float32.

    Args:
        largest: whole number that the largest weight of a row becomes, at most 127. With 63, pairs of products fit in
            16 bits, in which CPUs without VNNI instructions add them.
    """

    weight_int8: Tensor
    scales: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None = None, largest: int = 127) -> None:
        super().__init__()
        scales = _scales(weight, largest)
        self.register_buffer("weight_int8", (weight / scales).round().to(torch.int8))
        self.register_buffer("scales", scales.squeeze(1))
        self.register_buffer("bias", None if bias is None else bias.detach().clone())

    @property
    def in_features(self) -> int:
        """D."""
        return self.weight_int8.size(1)

    @property
    def out_features(self) -> int:
        """V."""
        return self.weight_int8.size(0)

    @property
    def weight(self) -> Tensor:
        """The weights as float32, (V, D), made at each call."""
        return self.weight_int8 * self.scales[:, None]

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., V)."""
        rows = x.reshape(-1, x.size(-1))
        products = rows.new_empty(len(rows), len(self.scales))
        for some, into in zip(rows.split(_ROWS), products.split(_ROWS), strict=True):
            scales = _scales(some, 127)
            whole = torch._int_mm((some / scales).round_().to(torch.int8), self.weight_int8.t())
            torch.mul(whole, scales, out=into).mul_(self.scales)
            if self.bias is not None:
                into.add_(self.bias)
        return products.view(*x.shape[:-1], len(self.scales))


class Int8HeadsLinear(Int8Linear):
    """A `HeadsLinear` with weights of 8 bits; rows for several heads are multiplied in float32."""

    @property
    def added(self) -> Tensor | None:
        """As that of `HeadsLinear`."""
        return self.bias

    def forward(self, x: Tensor, num_heads: int | None = None) -> Tensor:
        """As `HeadsLinear`."""
        if num_heads is None:
            return super().forward(x)
        return rows_of_heads(x, self.weight, self.bias, num_heads)


class Int8TiedOutput(Output):
    """An 8-bit copy of the token embeddings as an output layer."""

    def __init__(self, embedding: Tensor, largest: int) -> None:
        super().__init__()
        self.linear = Int8Linear(embedding, largest=largest)

    def forward(self, features: Tensor, embedding: Tensor, prepared: None = None) -> Tensor:
        return self.linear(features)


def in_bfloat16(network: Network) -> Network:
    """Return a copy in evaluation mode that computes in bfloat16, and what decides by scores in float32."""
    made = copy.deepcopy(network).eval().requires_grad_(False)
    kept = {id(part) for each in made.modules() if isinstance(each, DECIDING) for part in each.modules()}
    for module in made.modules():
        if id(module) not in kept:
            for tensors in (module._parameters, module._buffers):
                for value in tensors.values():
                    if value is not None and value.is_floating_point():
                        value.data = value.data.bfloat16()
    return made


def in_int8(network: Network, largest: int = 127) -> Network:
    """Return a copy in evaluation mode whose linear layers and tied output have weights of 8 bits.

    Other parts compute in float32: attention, norms, embeddings, and layers that are not dense, such as multiplicative
    and sparse ones. So do the parts that decide: scorers, the gates and boundaries of poolings, choices of units, and
    layers of few outputs.
    """
    made = copy.deepcopy(network).eval().requires_grad_(False)
    layers = list(_dense(made))
    for parent, name, layer in layers:
        kind = Int8HeadsLinear if isinstance(layer, HeadsLinear) else Int8Linear
        setattr(parent, name, kind(layer.weight, layer.bias, largest))
    decoder = getattr(made, "decoder", None)
    tied = False
    if isinstance(decoder, Decoder):
        points = isinstance(decoder.output, PointerOutput)
        owner, name = (decoder.output, "vocabulary") if points else (decoder, "output")
        tied = isinstance(getattr(owner, name), TiedOutput)
        if tied:
            setattr(owner, name, Int8TiedOutput(decoder.embedder.tokens.weight, largest))
    if not layers and not tied:
        raise ValueError("`precision` int8 is for models with dense layers, but this one has none.")
    return made


def _dense(module: nn.Module) -> Iterator[tuple[nn.Module, str, nn.Linear]]:
    """Yield the linear layers to quantize, each with its owner and its name there."""
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            if child.out_features >= _FEW:
                yield module, name, child
        elif not isinstance(child, _IN_FLOAT32):
            yield from _dense(child)


def _scales(rows: Tensor, largest: int) -> Tensor:
    """Return by what to divide each row to make its largest number ``largest``: (N, D) -> (N, 1)."""
    # Rows of zeros stay zeros.
    return (rows.detach().abs().amax(dim=1, keepdim=True) / largest).clamp_min_(torch.finfo(rows.dtype).tiny)
