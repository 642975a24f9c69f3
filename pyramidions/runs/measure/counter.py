"""The parts of a model in reports of cost, and what torch does in each while the model runs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from pyramidions.nn.attention import CoreAttention, GlobalRows
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.pooling import Pooler
from pyramidions.nn.recurrence import Recurrence
from pyramidions.nn.scorer import Scorer

_ATEN = torch.ops.aten
#: products with a vector, which torch does not count: the argument whose numbers are each multiplied once
_WITH_A_VECTOR = {_ATEN.mv: 0, _ATEN.addmv: 1, _ATEN.dot: 0, _ATEN.vdot: 0}


class CostPart(StrEnum):
    """What a model spends its multiplications and its memory on."""

    EMBEDDING_AND_NORMS = "embeddings, residuals, norms"
    ENCODER_ATTENTION = "encoder self-attention"
    ENCODER_PROJECTIONS = "encoder projections"
    ENCODER_FEED_FORWARD = "encoder feed-forward"
    POOLING = "scoring and pooling"
    DECODER_ATTENTION = "decoder self-attention"
    CROSS_ATTENTION = "cross-attention"
    DECODER_PROJECTIONS = "decoder projections"
    MEMORY_PROJECTIONS = "projections of the memory"
    DECODER_FEED_FORWARD = "decoder feed-forward"
    OUTPUT = "output layer"


def part_of(name: str, module: nn.Module) -> CostPart | None:
    """Return the part that a module is, given its name in the model; None if its work belongs to the module around it.

    This is all that cost knows of a model's shape.
    """
    in_encoder, crosses = name.startswith("encoder"), "cross_attention" in name
    if isinstance(module, (Pooler, Scorer)):
        return CostPart.POOLING
    # A recurrence stands beside a feed-forward part.
    if isinstance(module, (FeedForward, Recurrence)):
        return CostPart.ENCODER_FEED_FORWARD if in_encoder else CostPart.DECODER_FEED_FORWARD
    if isinstance(module, (CoreAttention, GlobalRows)):
        across = CostPart.CROSS_ATTENTION if crosses else CostPart.DECODER_ATTENTION
        return CostPart.ENCODER_ATTENTION if in_encoder else across
    if name.endswith("_proj"):
        of_memory = crosses and name.endswith(("k_proj", "v_proj", "memory_proj"))
        decoder = CostPart.MEMORY_PROJECTIONS if of_memory else CostPart.DECODER_PROJECTIONS
        return CostPart.ENCODER_PROJECTIONS if in_encoder else decoder
    if isinstance(module, nn.LayerNorm):
        return CostPart.EMBEDDING_AND_NORMS
    return None


class PartCounter(TorchDispatchMode):
    """Counts the work of a forward pass, and what it keeps for the backward pass, by part."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.products: Counter[CostPart] = Counter()  # multiplications in matrix products
        self.weighted: Counter[CostPart] = Counter()  # those of vectors with weights outside of matrix products
        self.kept: Counter[CostPart] = Counter()  # bytes without parameters, by the part that keeps a tensor first
        self._model = model
        # Storages stay alive, so that no other takes their place and their id.
        self._known = {id(storage): storage for storage in (p.untyped_storage() for p in model.parameters())}
        self._at_work = [CostPart.EMBEDDING_AND_NORMS]
        self._scorers = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what runs inside this context."""
        handles: list[Any] = []
        for name, module in self._model.named_modules():
            if (part := part_of(name, module)) is not None:
                handles += self._follow(module, part)
        try:
            with saved_tensors_hooks(self._keep, lambda x: x), self:
                yield
        finally:
            for handle in handles:
                handle.remove()

    def enter(self, part: CostPart) -> None:
        # What a scorer asks of the layer before is the scorer's own work.
        self._at_work.append(CostPart.POOLING if self._scorers else part)

    def leave(self) -> None:
        self._at_work.pop()

    def _follow(self, module: nn.Module, part: CostPart) -> Iterator[Any]:
        scores = isinstance(module, Scorer)

        def enter(*_: object) -> None:
            self.enter(part)
            self._scorers += scores

        def leave(*_: object) -> None:
            self._scorers -= scores
            self.leave()

        yield module.register_forward_pre_hook(enter)
        yield module.register_forward_hook(leave)

    def _keep(self, x: Tensor) -> Tensor:
        storage = x.untyped_storage()
        if id(storage) not in self._known:
            self._known[id(storage)] = storage
            self.kept[self._at_work[-1]] += storage.nbytes()
        return x

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator and count its multiplications."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        operator, part = func.overloadpacket, self._at_work[-1]
        if operator in flop_registry:
            # An operation is a multiplication or an addition.
            self.products[part] += flop_registry[operator](*args, **kwargs, out_val=out) // 2
        elif operator is _ATEN._scaled_dot_product_flash_attention_for_cpu:
            self.products[part] += sdpa_flop_count(*(x.shape for x in args[:3])) // 2
        elif operator in _WITH_A_VECTOR:
            self.products[part] += args[_WITH_A_VECTOR[operator]].numel()
        elif operator in (_ATEN._embedding_bag, _ATEN._embedding_bag_forward_only):
            vectors, members = args[:2]
            self.weighted[part] += members.numel() * vectors.size(1)
        return out
