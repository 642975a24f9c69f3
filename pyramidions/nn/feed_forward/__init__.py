"""Feed-forward parts, one kind per file; importing this package fills the registry."""

from pyramidions.nn.feed_forward.dense import FEED_FORWARD as FEED_FORWARD
from pyramidions.nn.feed_forward.dense import DenseFeedForward as DenseFeedForward
from pyramidions.nn.feed_forward.dense import FeedForward as FeedForward
from pyramidions.nn.feed_forward.dense import GatedFeedForward as GatedFeedForward
from pyramidions.nn.feed_forward.sparse import ExpertsFeedForward as ExpertsFeedForward
from pyramidions.nn.feed_forward.sparse import SparseFeedForward as SparseFeedForward
