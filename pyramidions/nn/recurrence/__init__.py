"""Recurrences, one kind per file; importing this package fills the registry."""

from pyramidions.nn.recurrence.core import RECURRENCE, Recurrence
from pyramidions.nn.recurrence.sru import SRURecurrence

__all__ = ["RECURRENCE", "Recurrence", "SRURecurrence"]
