"""Output layers, one kind per file; importing this package fills the registry."""

from pyramidions.nn.output.core import OUTPUT, Output
from pyramidions.nn.output.multiplicative import MultiplicativeOutput
from pyramidions.nn.output.tied import TiedOutput
from pyramidions.nn.output.untied import UntiedOutput

__all__ = ["OUTPUT", "MultiplicativeOutput", "Output", "TiedOutput", "UntiedOutput"]
