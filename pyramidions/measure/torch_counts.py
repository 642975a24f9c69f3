"""What torch itself counts in a forward pass, by part of the model."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from pyramidions.measure.shapes import Lengths, Part
from pyramidions.nn import Transformer
from pyramidions.nn.attention import CoreAttention
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.pooling import Pooler
from pyramidions.nn.scorer import Scorer


def products_by_torch(model: Transformer, lengths: Lengths) -> Counter[Part]:
    """Count the multiplications in matrix products of a forward pass: half of the operations that torch counts."""
    counted: Counter[Part] = Counter()
    total = 0

    def charge(part: Part) -> None:
        nonlocal total
        operations = counter.get_total_flops()
        counted[part] += (operations - total) // 2
        total = operations

    # The fused kernel of the CPU would be counted as nothing.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), _watch(model, charge) as parts:
        _step(model, lengths, parts)
        charge(parts.current)
    return counted


def saved_by_torch(model: Transformer, lengths: Lengths) -> Counter[Part]:
    """Count the bytes that a training step saves for its backward pass, a storage once, parameters excluded."""
    saved: Counter[Part] = Counter()
    known = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = []

    def pack(x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in known:
            known.add(storage.data_ptr())
            kept.append(x)  # so that its address is not given to another
            saved[parts.current] += storage.nbytes()
        return x

    with _watch(model, lambda part: None) as parts, torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        _step(model, lengths, parts)
    return saved


def _step(model: Transformer, lengths: Lengths, parts: "_Parts") -> None:
    """Compute the loss of random tokens, none of them padding."""
    source, prefix, target = (
        torch.randint(model.padding_idx + 1, lengths.vocab_size, (lengths.batch, length))
        for length in (lengths.source, lengths.target, lengths.target)
    )
    encoded = model.encoder(source, source.eq(model.padding_idx))
    features = model.decoder.features(prefix, encoded.memory, encoded.attention_mask)
    parts.enter(Part.OUTPUT)
    log_probs = model.decoder.logits(features).log_softmax(dim=-1)
    log_probs.gather(-1, target[..., None]).sum()
    parts.leave()


class _Parts:
    """Knows which part of a model is at work.

    Args:
        charge: called with the part that has been at work whenever another takes over.
    """

    def __init__(self, charge: Callable[[Part], None]) -> None:
        self.charge = charge
        self.stack = [Part.EMBEDDING_AND_NORMS]
        self.scoring = 0

    @property
    def current(self) -> Part:
        return self.stack[-1]

    def enter(self, part: Part) -> None:
        self.charge(self.current)
        # A scorer may ask modules of the layer before: that is its own work.
        self.stack.append(Part.POOLING if self.scoring else part)

    def leave(self) -> None:
        self.charge(self.current)
        self.stack.pop()


@contextmanager
def _watch(model: Transformer, charge: Callable[[Part], None]) -> Iterator[_Parts]:
    """Follow the modules of a model as they are entered and left."""
    parts = _Parts(charge)
    handles = []
    for name, module in model.named_modules():
        part = _part(name, module)
        if part is None:
            continue
        scoring = isinstance(module, Scorer)

        def enter(*_: Any, part: Part = part, scoring: bool = scoring) -> None:
            parts.enter(part)
            parts.scoring += scoring

        def leave(*_: Any, scoring: bool = scoring) -> None:
            parts.scoring -= scoring
            parts.leave()

        handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
    try:
        yield parts
    finally:
        for handle in handles:
            handle.remove()


def _part(name: str, module: nn.Module) -> Part | None:
    in_encoder = name.startswith("encoder")
    if isinstance(module, (Pooler, Scorer)):
        return Part.POOLING
    if isinstance(module, FeedForward):
        return Part.ENCODER_FEED_FORWARD if in_encoder else Part.DECODER_FEED_FORWARD
    if isinstance(module, CoreAttention):
        across = Part.CROSS_ATTENTION if "cross_attention" in name else Part.DECODER_ATTENTION
        return Part.ENCODER_ATTENTION if in_encoder else across
    if name.endswith("_proj"):
        of_memory = "cross_attention" in name and name.endswith(("k_proj", "v_proj"))
        decoder = Part.MEMORY_PROJECTIONS if of_memory else Part.DECODER_PROJECTIONS
        return Part.ENCODER_PROJECTIONS if in_encoder else decoder
    if isinstance(module, nn.LayerNorm):
        return Part.EMBEDDING_AND_NORMS
    return None
