"""Decoders, one kind per file; importing this package fills the registry."""

from pyramidions.nn.decoder.cache import DecoderCache as DecoderCache
from pyramidions.nn.decoder.concatenated import ConcatenatedDecoder as ConcatenatedDecoder
from pyramidions.nn.decoder.cross_attending import CrossAttendingDecoder as CrossAttendingDecoder
from pyramidions.nn.decoder.decoder import DECODER as DECODER
from pyramidions.nn.decoder.decoder import Decoder as Decoder
