"""Stacks, one per file; importing this package fills the registry."""

from pyramidions.nn.stack.reversible import ReversibleStack as ReversibleStack
from pyramidions.nn.stack.stack import STACK as STACK
from pyramidions.nn.stack.stack import PlainStack as PlainStack
from pyramidions.nn.stack.stack import RecomputingStack as RecomputingStack
from pyramidions.nn.stack.stack import Stack as Stack
