"""The documents that a page of scores shows: the worst and the best by each figure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyramidions.files.progress import progress_bar
from pyramidions.pages.frame import MOST, as_json
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metric import Figure
from pyramidions.scoring.page_charts import number
from pyramidions.scoring.page_texts import Sentences, document_texts
from pyramidions.text.normalization import split_sentences

#: documents on a page, at most; with many figures and systems each has fewer
MOST_DOCUMENTS = 400
_FEWEST = 3


class Shown:
    """The documents that a page shows, each once, gathered one by one.

    Args:
        examples: of each system.
        ids: of the documents.
        values: (systems, documents, figures).
        most: bytes of all of them.
        sentences_of: splits a text.
    """

    def __init__(
        self,
        examples: Sequence[Examples],
        ids: Sequence[str],
        values: np.ndarray,
        most: int = MOST,
        sentences_of: Sentences = split_sentences,
    ) -> None:
        self._sentences_of = sentences_of
        self._examples = examples
        self._ids = ids
        self._values = values
        self._left = most
        self._places: dict[int, int | None] = {}
        self.found: list[dict[str, Any]] = []

    @property
    def left_out(self) -> int:
        """The number of documents that found no room."""
        return sum(place is None for place in self._places.values())

    def place(self, document: int) -> int | None:
        """Return where a document is in `found`, and add it if need be; None if there is no room."""
        if document not in self._places:
            texts = document_texts([of_system[document] for of_system in self._examples], self._sentences_of)
            scores = [[number(value) for value in row] for row in self._values[:, document]]
            shown = {"id": self._ids[document], "scores": scores, **texts}
            size = len(as_json(shown).encode())
            has_room = size <= self._left
            self._places[document] = len(self.found) if has_room else None
            if has_room:
                self._left -= size
                self.found.append(shown)
        return self._places[document]


def extremes(
    values: np.ndarray, figures: Mapping[str, Figure], shown: Shown, documents: int
) -> list[list[dict[str, list[int]]]]:
    """Choose the documents that are shown.

    Args:
        values: (systems, documents, figures).
        figures: in this order.
        shown: takes the documents.
        documents: how many at either end.

    Returns:
        For each order, for each figure, the "worst" and the "best" first, as places in `Shown.found`. The first order
        is by the first system's scores, the others by their differences to each other system's. The lowest figure is
        the worst, unless lower ones are better.
    """
    orders = [values[0], *(values[0] - other for other in values[1:])]
    lists = 2 * len(orders) * len(figures)
    documents = min(documents, max(_FEWEST, MOST_DOCUMENTS // lists))
    chosen: list[list[dict[str, list[int]]]] = [[] for _ in orders]
    with progress_bar("choosing documents for the page", lists // 2, "lists") as bar:
        for place, figure in enumerate(figures.values()):
            for order, of_order in zip(orders, chosen, strict=True):
                ends = _ends(order[:, place], documents, lower_is_better=figure.better == "lower")
                kept = {
                    end: [at for document in found if (at := shown.place(document)) is not None]
                    for end, found in ends.items()
                }
                of_order.append(kept)
                bar.update()
    return chosen


def _ends(scores: np.ndarray, documents: int, *, lower_is_better: bool) -> dict[str, list[int]]:
    """Return the worst and the best documents, none of them twice."""
    known = np.flatnonzero(np.isfinite(scores))
    order = known[np.argsort(-scores[known] if lower_is_better else scores[known], kind="stable")].tolist()
    best = order[::-1][: min(documents, (len(order) + 1) // 2)]
    worst = order[: min(documents, len(order) - len(best))]
    return {"worst": worst, "best": best}
