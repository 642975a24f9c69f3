"""Stacks, one per file; importing this package fills the registry."""

from pyramidions.nn.stack.core import STACK, Stack
from pyramidions.nn.stack.plain import PlainStack
from pyramidions.nn.stack.recomputing import RecomputingStack
from pyramidions.nn.stack.reversible import ReversibleStack

__all__ = ["STACK", "PlainStack", "RecomputingStack", "ReversibleStack", "Stack"]
