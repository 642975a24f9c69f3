"""The lead: the first sentences are the best."""

import numpy as np

from pyramidions.base.arguments import checked
from pyramidions.extract.core import RANKERS, Ranker
from pyramidions.text.outline import Outline


@RANKERS.register("lead")
class Lead(Ranker):
    """Prefers a sentence to all that follow it: the beginning of the document, without gaps."""

    stops = True

    @checked
    def rank(self, outline: Outline) -> np.ndarray:
        return -np.arange(len(outline.sentences), dtype=np.float64)
