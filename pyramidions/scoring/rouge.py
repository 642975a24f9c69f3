"""ROUGE-1, -2, -L and -Lsum (Lin, 2004), the same for every system and every corpus."""

from functools import lru_cache
from importlib.metadata import version
from typing import Any

from pyramidions.scoring.metric import Metric
from pyramidions.text.normalization import NORMALISATION, SPLITTER, split_sentences

_LABELS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "rougeLsum": "ROUGE-Lsum"}


def _score(prediction: str, reference: str) -> list[float]:
    """Return F-measures of one summary, 0 to 100.

    Both texts are normalised and split into sentences here, whatever their own line breaks.
    """
    scores = _scorer().score(_one_sentence_a_line(reference), _one_sentence_a_line(prediction))
    return [100 * float(scores[name].fmeasure) for name in _LABELS]


def _signature() -> str:
    implementation = f"rouge-score {version('rouge-score')}"
    return f"{implementation} | stemmer | F1 | sentences: {SPLITTER} | normalisation {NORMALISATION}"


def _one_sentence_a_line(text: str) -> str:
    return "\n".join(split_sentences(text))


@lru_cache(maxsize=1)
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(list(_LABELS), use_stemmer=True)


ROUGE = Metric(_LABELS, _score, _signature)
