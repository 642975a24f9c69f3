"""Output layers, one kind per file; importing this package fills the registry."""

from pyramidions.nn.output.pointer import Pointer as Pointer
from pyramidions.nn.output.pointer import PointerMemory as PointerMemory
from pyramidions.nn.output.pointer import PointerOutput as PointerOutput
from pyramidions.nn.output.vocabulary import OUTPUT as OUTPUT
from pyramidions.nn.output.vocabulary import MultiplicativeOutput as MultiplicativeOutput
from pyramidions.nn.output.vocabulary import Output as Output
from pyramidions.nn.output.vocabulary import TiedOutput as TiedOutput
from pyramidions.nn.output.vocabulary import UntiedOutput as UntiedOutput
