"""Scorers, one kind per file; importing this package fills the registry."""

from pyramidions.nn.scorer.core import SCORER as SCORER
from pyramidions.nn.scorer.core import LogitScorer as LogitScorer
from pyramidions.nn.scorer.core import Scorer as Scorer
from pyramidions.nn.scorer.linear import LinearScorer as LinearScorer
from pyramidions.nn.scorer.linear import NonlinearScorer as NonlinearScorer
from pyramidions.nn.scorer.query import QueryScorer as QueryScorer
from pyramidions.nn.scorer.unlearned import AttentionScorer as AttentionScorer
from pyramidions.nn.scorer.unlearned import EmbeddingScorer as EmbeddingScorer
from pyramidions.nn.scorer.unlearned import IndexScorer as IndexScorer
from pyramidions.nn.scorer.unlearned import RandomScorer as RandomScorer
