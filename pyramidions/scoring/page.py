"""Shows the scores of systems on an HTML page: tables, distributions, lengths, and the worst and best documents."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyramidions.pages.page import as_json, rendered
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.page_documents import Shown, extremes, number
from pyramidions.scoring.scores import SMALLEST_P, Scores
from pyramidions.text.language import Language
from pyramidions.text.words import word_places

#: documents that a page shows for each figure and order, at either end
DOCUMENTS = 10
_BINS = 40
#: documents of the scatter plot, at most
MOST_POINTS = 1500
_SEED = 1


def score_page(
    systems: Mapping[str, tuple[Examples, Scores]],
    ids: Sequence[str],
    *,
    documents: int = DOCUMENTS,
    language: str = "en",
) -> str:
    """Return the page: one file that needs no network, and whose size does not grow with the number of documents.

    Read from the examples are the texts of the documents that are shown, and some summaries for their lengths.

    Args:
        systems: at least one, by name, scored by the same metrics on the same documents; differences are those of the
            first to each other one.
        ids: of the documents, in their order.
        documents: how many are shown for each figure at either end, if the page has room.
        language: ISO 639-1 code, which decides where sentences end.

    Raises:
        UserError: the systems have unequal numbers of documents, or other figures.
    """
    names = list(systems)
    scores = [scored for _, scored in systems.values()]
    first, *others = scores
    differences = [first.compare(other) for other in others]
    # (systems, documents, figures)
    values = np.stack([scored.scores for scored in scores])
    examples = [of_system for of_system, _ in systems.values()]
    shown = Shown(examples, ids, values, sentences_of=Language(language).sentences)
    data = {
        "view": "scores",
        "systems": names,
        "documents": len(ids),
        "figures": [{"name": name, **figure._asdict()} for name, figure in first.figures.items()],
        "estimates": [[list(map(number, estimate)) for estimate in each.estimates.values()] for each in scores],
        "differences": [[list(map(number, d)) for d in difference.values()] for difference in differences],
        "smallest_p": SMALLEST_P,
        "signature": first.signature,
        "remarks": [list(each.remarks) for each in scores],
        "distributions": [distribution(values[:, :, place]) for place in range(values.shape[2])],
        "points": length_points(examples, ids, values),
        "orders": extremes(values, first.figures, shown, documents),
        "shown": shown.found,
        "left_out": shown.left_out,
    }
    return rendered("Scores of summaries", as_json(data))


def distribution(scores: np.ndarray) -> dict[str, Any]:
    """Count the documents along a figure.

    Few outliers would press all others into one bar: where the lowest and the highest percent take more than half of
    the range, the outermost bars count them.

    Args:
        scores: (systems, documents) of one figure.

    Returns:
        The range, whether it leaves out outliers, and of each system the counts of equal bars and the quartiles.
    """
    finite = scores[np.isfinite(scores)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    inner_low, inner_high = map(float, np.percentile(finite, [1, 99])) if finite.size else (low, high)
    cut = inner_low < inner_high < inner_low + (high - low) / 2
    if cut:
        low, high = inner_low, inner_high
    if low == high:
        low, high = low - 0.5, high + 0.5
    of_systems = [row[np.isfinite(row)] for row in scores]
    return {
        "low": number(low),
        "high": number(high),
        "cut": cut,
        "counts": [np.histogram(row.clip(low, high), _BINS, (low, high))[0].tolist() for row in of_systems],
        "quartiles": [
            [number(value) for value in np.percentile(row, [0, 25, 50, 75, 100])] if row.size else [None] * 5
            for row in of_systems
        ],
    }


def length_points(examples: Sequence[Examples], ids: Sequence[str], values: np.ndarray) -> dict[str, Any]:
    """Return the lengths and scores of documents, drawn at random if there are more than `MOST_POINTS`.

    Args:
        examples: of each system.
        ids: of the documents.
        values: (systems, documents, figures).

    Returns:
        The ids; of each system the lengths in words, the scores of each figure, and their correlations (Pearson) with
        the lengths, None where one of both never changes.
    """
    places = list(range(len(ids)))
    if len(ids) > MOST_POINTS:
        places = sorted(np.random.default_rng(_SEED).choice(len(ids), MOST_POINTS, replace=False).tolist())
    words = [[sum(1 for _ in word_places(of_system[place].prediction)) for place in places] for of_system in examples]
    scores = values[:, places].transpose(0, 2, 1)
    return {
        "ids": [ids[place] for place in places],
        "words": words,
        "scores": [[list(map(number, of_figure)) for of_figure in of_system] for of_system in scores],
        "correlations": [
            [_correlation(np.array(lengths), of_figure) for of_figure in of_system]
            for lengths, of_system in zip(words, scores, strict=True)
        ],
    }


def _correlation(one: np.ndarray, other: np.ndarray) -> float | None:
    if np.ptp(one) == 0 or not np.ptp(other) > 0:
        return None
    return number(float(np.corrcoef(one, other)[0, 1]))
