"""Kinds of tokenizers: `core` has the role, each other file a kind."""

from pyramidions.text.tokenizer.byte_level import ByteLevelTokenizer
from pyramidions.text.tokenizer.core import (
    BOS,
    DOCUMENT_SEPARATOR,
    EOS,
    KINDS,
    MARKERS,
    MARKERS_BETWEEN,
    NAME_END,
    PAD,
    SENTENCE_MARKER,
    SPACE,
    SPECIALS,
    TURN_MARKER,
    UNK,
    Tokenizer,
)
from pyramidions.text.tokenizer.sentencepiece import SentencePieceTokenizer

__all__ = [
    "BOS",
    "EOS",
    "KINDS",
    "PAD",
    "DOCUMENT_SEPARATOR",
    "MARKERS",
    "MARKERS_BETWEEN",
    "NAME_END",
    "SENTENCE_MARKER",
    "TURN_MARKER",
    "SPACE",
    "SPECIALS",
    "UNK",
    "ByteLevelTokenizer",
    "SentencePieceTokenizer",
    "Tokenizer",
]

KINDS[:] = [ByteLevelTokenizer, SentencePieceTokenizer]
