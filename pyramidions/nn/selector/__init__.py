"""What selects sentences by their vectors, one kind per file; importing this package fills the registry."""

from pyramidions.nn.selector.core import SELECTOR as SELECTOR
from pyramidions.nn.selector.core import Pick as Pick
from pyramidions.nn.selector.core import Selector as Selector
from pyramidions.nn.selector.core import Steps as Steps
from pyramidions.nn.selector.pointer import PointerSelector as PointerSelector
