"""Pure PyTorch parts: everything here imports torch and the standard library only.

Shapes, batch first. Masks are True at padding.

===  ==========================================================
B    batch: documents
L    length: positions of a sequence (Lq of queries, Lk of keys)
K    length after pooling
G    members that a pooled vector may be made of
M    positions in a block
N    blocks, over all documents of a batch
H    attention heads
D    embed_dim
E    head_dim, D / H
V    vocabulary
T    target length
W    hypotheses of a document
S    tokens written so far for a document, by all of its hypotheses
U    units of a text: its sentences, turns or sections
===  ==========================================================

Constructors say what an argument is, but for ``embed_dim`` (D), ``num_heads`` (H), and in attention ``dropout``: the
probability of dropping an attention weight while training. They raise ValueError for arguments that break a rule.
"""

from pyramidions.nn.beam_search import BeamSearch
from pyramidions.nn.decoder import Decoder, DecoderCache
from pyramidions.nn.encoder import Encoded, Encoder
from pyramidions.nn.language_model import LanguageModel, LanguageModelCache
from pyramidions.nn.sampling import Sampling
from pyramidions.nn.sentence_ranker import SentenceRanker
from pyramidions.nn.transformer import Transformer
from pyramidions.nn.writer import Hypothesis, NoSummaryError, Writer

__all__ = [
    "BeamSearch",
    "Decoder",
    "DecoderCache",
    "Encoded",
    "Encoder",
    "Hypothesis",
    "LanguageModel",
    "LanguageModelCache",
    "NoSummaryError",
    "Sampling",
    "SentenceRanker",
    "Transformer",
    "Writer",
]
