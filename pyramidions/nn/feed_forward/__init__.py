"""Feed-forward parts, one kind per file; importing this package fills the registry."""

from pyramidions.nn.feed_forward.core import FEED_FORWARD, FeedForward
from pyramidions.nn.feed_forward.dense import DenseFeedForward
from pyramidions.nn.feed_forward.experts import ExpertsFeedForward
from pyramidions.nn.feed_forward.sparse import SparseFeedForward

__all__ = ["FEED_FORWARD", "DenseFeedForward", "ExpertsFeedForward", "FeedForward", "SparseFeedForward"]
