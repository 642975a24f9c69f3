"""Shows the scores of systems on an HTML page: tables, distributions, lengths, and the worst and best documents."""

from collections.abc import Mapping, Sequence

import numpy as np

from pyramidions.pages.frame import as_json, framed, resource
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.page_charts import distribution, length_points, number
from pyramidions.scoring.page_documents import Shown, extremes
from pyramidions.scoring.scores import SMALLEST_P, Scores
from pyramidions.text.language import Language

#: documents that a page shows for each figure and order, at either end
DOCUMENTS = 10


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
    return framed(
        "Scores of summaries",
        _text("page.html"),
        _text("page.css"),
        _text("page.js") + _text("page_documents.js"),
        as_json(data),
    )


def _text(name: str) -> str:
    return resource("pyramidions.scoring", name)
