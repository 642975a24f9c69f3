"""Kinds of tokenizers: `core` has the role, each other file a kind."""

from pyramidions.text.tokenizer.core import (
    BOS,
    DOCUMENT_SEPARATOR,
    EOS,
    KINDS,
    MARKERS,
    MARKERS_BETWEEN,
    NAME_END,
    PAD,
    RECORDED,
    SENTENCE_MARKER,
    SPACE,
    SPECIALS,
    TURN_MARKER,
    UNK,
    Numbering,
    Tokenizer,
)
from pyramidions.text.tokenizer.json_file import JsonTokenizer
from pyramidions.text.tokenizer.sentencepiece import SentencePieceTokenizer

__all__ = [
    "BOS",
    "EOS",
    "KINDS",
    "PAD",
    "RECORDED",
    "DOCUMENT_SEPARATOR",
    "MARKERS",
    "MARKERS_BETWEEN",
    "NAME_END",
    "SENTENCE_MARKER",
    "TURN_MARKER",
    "SPACE",
    "SPECIALS",
    "UNK",
    "JsonTokenizer",
    "Numbering",
    "SentencePieceTokenizer",
    "Tokenizer",
]

KINDS[:] = [JsonTokenizer, SentencePieceTokenizer]
