"""Decoders, one kind per file; importing this package fills the registry."""

from pyramidions.nn.decoder.cache import DecoderCache
from pyramidions.nn.decoder.concatenated import ConcatenatedDecoder
from pyramidions.nn.decoder.core import DECODER, Decoder
from pyramidions.nn.decoder.cross_attending import CrossAttendingDecoder

__all__ = ["DECODER", "ConcatenatedDecoder", "CrossAttendingDecoder", "Decoder", "DecoderCache"]
