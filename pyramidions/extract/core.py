"""The role of a ranker, and the registry of kinds."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from pyramidions.base.registry import Registry
from pyramidions.extract.selection import WORDS, Budget, SelectionRules
from pyramidions.text.outline import Outline

#: Documents that a trained extractor reads together.
BLOCK = 32


class Ranker(ABC):
    """Rates the sentences of a document."""

    #: a selection ends where a sentence does not fit; see `SelectionRules`
    stops: ClassVar[bool] = False

    @property
    def rules(self) -> SelectionRules:
        """How its sentences are selected, unless something else is asked for."""
        return SelectionRules(Budget(WORDS), stops=self.stops)

    @abstractmethod
    def rank(self, outline: Outline) -> np.ndarray:
        """Return a score for each of ``outline.sentences``: (sentences,), float64, more is better.

        A sentence of score -inf is never extracted.
        """


RANKERS: Registry[Ranker] = Registry("method")
