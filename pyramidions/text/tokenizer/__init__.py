"""Kinds of tokenizers: `core` has the role, each other file a kind."""

from pyramidions.text.tokenizer.core import BOS as BOS
from pyramidions.text.tokenizer.core import DOCUMENT_SEPARATOR as DOCUMENT_SEPARATOR
from pyramidions.text.tokenizer.core import EOS as EOS
from pyramidions.text.tokenizer.core import KINDS as KINDS
from pyramidions.text.tokenizer.core import MARKERS as MARKERS
from pyramidions.text.tokenizer.core import MARKERS_BETWEEN as MARKERS_BETWEEN
from pyramidions.text.tokenizer.core import NAME_END as NAME_END
from pyramidions.text.tokenizer.core import PAD as PAD
from pyramidions.text.tokenizer.core import RECORDED as RECORDED
from pyramidions.text.tokenizer.core import SENTENCE_MARKER as SENTENCE_MARKER
from pyramidions.text.tokenizer.core import SPACE as SPACE
from pyramidions.text.tokenizer.core import SPECIALS as SPECIALS
from pyramidions.text.tokenizer.core import TURN_MARKER as TURN_MARKER
from pyramidions.text.tokenizer.core import UNK as UNK
from pyramidions.text.tokenizer.core import Numbering as Numbering
from pyramidions.text.tokenizer.core import Tokenizer as Tokenizer
from pyramidions.text.tokenizer.json_file import JsonTokenizer as JsonTokenizer
from pyramidions.text.tokenizer.sentencepiece import SentencePieceTokenizer as SentencePieceTokenizer

KINDS[:] = [JsonTokenizer, SentencePieceTokenizer]
