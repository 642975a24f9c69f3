"""The parts of a model that cost is told by, and which of them a module belongs to."""

from enum import StrEnum

from torch import nn

from pyramidions.nn.attention import CoreAttention
from pyramidions.nn.feed_forward import FeedForward
from pyramidions.nn.pooling import Pooler
from pyramidions.nn.scorer import Scorer


class Part(StrEnum):
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
    Part.DECODER_ATTENTION,
    Part.CROSS_ATTENTION,
    Part.DECODER_PROJECTIONS,
    Part.MEMORY_PROJECTIONS,
    Part.DECODER_FEED_FORWARD,
    Part.OUTPUT,
)


def part_of(name: str, module: nn.Module) -> Part | None:
    """Return the part that a module is, given its name in the model; None if its work belongs to the module around it.

    This is all that cost knows of a model's shape.
    """
    in_encoder, crosses = name.startswith("encoder"), "cross_attention" in name
    if isinstance(module, (Pooler, Scorer)):
        return Part.POOLING
    if isinstance(module, FeedForward):
        return Part.ENCODER_FEED_FORWARD if in_encoder else Part.DECODER_FEED_FORWARD
    if isinstance(module, CoreAttention):
        across = Part.CROSS_ATTENTION if crosses else Part.DECODER_ATTENTION
        return Part.ENCODER_ATTENTION if in_encoder else across
    if name.endswith("_proj"):
        of_memory = crosses and name.endswith(("k_proj", "v_proj"))
        decoder = Part.MEMORY_PROJECTIONS if of_memory else Part.DECODER_PROJECTIONS
        return Part.ENCODER_PROJECTIONS if in_encoder else decoder
    if isinstance(module, nn.LayerNorm):
        return Part.EMBEDDING_AND_NORMS
    return None
