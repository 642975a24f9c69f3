"""Recurrences, one kind per file; importing this package fills the registry."""

from pyramidions.nn.recurrence.core import RECURRENCE as RECURRENCE
from pyramidions.nn.recurrence.core import Recurrence as Recurrence
from pyramidions.nn.recurrence.core import SRURecurrence as SRURecurrence
