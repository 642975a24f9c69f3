"""Small systems with made-up scores, for tests of the page of scores."""

import numpy as np

from pyramidions.scoring.examples import Examples
from pyramidions.scoring.metric import Figure
from pyramidions.scoring.scores import Scores

FIGURES = {"rouge1": Figure("ROUGE-1"), "repeats": Figure("repeated", "lower"), "words": Figure("words", None)}
SOURCE = "The cell divides every two hours in warm water. Cold water stops it. We counted by hand."
MADE_UP = "Unicorns like to sing at night."
Systems = dict[str, tuple[Examples, Scores]]


def systems(documents: int = 6, *, with_sources: bool = True) -> Systems:
    """Return two systems: "ours" copies and makes things up, and leaves the first summary empty; "lead" copies."""
    draw = np.random.default_rng(1)
    references = [("Cells divide every two hours.",)] * documents
    sources = [SOURCE] * documents if with_sources else None
    ours = ["", *[f"Cold water stops it. {MADE_UP}"] * (documents - 1)]
    lead = ["The cell divides every two hours in warm water."] * documents
    # The first figure of "ours" grows with the document.
    of_ours = np.stack([np.arange(documents), -np.arange(documents), draw.integers(1, 9, documents)], axis=1) * 1.0
    of_lead = of_ours + draw.normal(size=of_ours.shape)
    return {
        "ours": (
            Examples(ours, references, sources),
            Scores(FIGURES, of_ours, ["metric 1.0 | stem"], ["1 summary is empty.", "All are short."]),
        ),
        "lead": (Examples(lead, references, sources), Scores(FIGURES, of_lead, ["metric 1.0"], ["All are short."])),
    }


def ids(documents: int = 6) -> list[str]:
    return [f"d{number}" for number in range(documents)]
