"""Stacks, one per file; importing this package fills the registry."""

from pyramidions.nn.stack.core import STACK as STACK
from pyramidions.nn.stack.core import PlainStack as PlainStack
from pyramidions.nn.stack.core import RecomputingStack as RecomputingStack
from pyramidions.nn.stack.core import Stack as Stack
from pyramidions.nn.stack.reversible import ReversibleStack as ReversibleStack
