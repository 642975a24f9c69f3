"""Ways to mark where segments end, one kind per file; importing this package fills the registry."""

from pyramidions.nn.boundaries.predicted import EntropyBoundaries as EntropyBoundaries
from pyramidions.nn.boundaries.predicted import GumbelBoundaries as GumbelBoundaries
from pyramidions.nn.boundaries.predicted import RoutingBoundaries as RoutingBoundaries
from pyramidions.nn.boundaries.predicted import SupervisedBoundaries as SupervisedBoundaries
from pyramidions.nn.boundaries.predicted import UnigramBoundaries as UnigramBoundaries
from pyramidions.nn.boundaries.segmentation import BOUNDARIES as BOUNDARIES
from pyramidions.nn.boundaries.segmentation import Boundaries as Boundaries
from pyramidions.nn.boundaries.segmentation import FixedBoundaries as FixedBoundaries
from pyramidions.nn.boundaries.segmentation import HiddenStates as HiddenStates
from pyramidions.nn.boundaries.segmentation import Segmentation as Segmentation
from pyramidions.nn.boundaries.segmentation import WhitespaceBoundaries as WhitespaceBoundaries
