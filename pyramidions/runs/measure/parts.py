"""The parts of a model in reports of cost, and which of them a module belongs to."""

from enum import StrEnum

from torch import nn

from pyramidions.nn.attention import CoreAttention, GlobalRows
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.pooling import Pooler
from pyramidions.nn.recurrence import Recurrence
from pyramidions.nn.scorer import Scorer


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


#: what the decoder does, the projections of the memory to keys and values included
DECODER = (
    CostPart.DECODER_ATTENTION,
    CostPart.CROSS_ATTENTION,
    CostPart.DECODER_PROJECTIONS,
    CostPart.MEMORY_PROJECTIONS,
    CostPart.DECODER_FEED_FORWARD,
    CostPart.OUTPUT,
)


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
