"""Scorers, one kind per file; importing this package fills the registry."""

from pyramidions.nn.scorer.attention import AttentionScorer
from pyramidions.nn.scorer.core import SCORER, LogitScorer, Scorer
from pyramidions.nn.scorer.embedding import EmbeddingScorer
from pyramidions.nn.scorer.index import IndexScorer
from pyramidions.nn.scorer.linear import LinearScorer
from pyramidions.nn.scorer.nonlinear import NonlinearScorer
from pyramidions.nn.scorer.query import QueryScorer
from pyramidions.nn.scorer.random import RandomScorer

__all__ = [
    "SCORER",
    "AttentionScorer",
    "EmbeddingScorer",
    "IndexScorer",
    "LinearScorer",
    "LogitScorer",
    "NonlinearScorer",
    "QueryScorer",
    "RandomScorer",
    "Scorer",
]
