"""The metrics: each is registered in `METRICS` by a module of this folder."""

from pyramidions.scoring.metrics.apes_src import ApesSrc
from pyramidions.scoring.metrics.embeddings import BertScore, MoverScore
from pyramidions.scoring.metrics.entailment import Entailment
from pyramidions.scoring.metrics.entities import Capitalized, Entities
from pyramidions.scoring.metrics.meteor import Meteor
from pyramidions.scoring.metrics.of_words import Coverage, Length, Novelty, Repetition
from pyramidions.scoring.metrics.pairs import BartScore, BartScoreFaithfulness, Bleurt
from pyramidions.scoring.metrics.rouge import Rouge

__all__ = [
    "ApesSrc",
    "BartScore",
    "BartScoreFaithfulness",
    "BertScore",
    "Bleurt",
    "Capitalized",
    "Coverage",
    "Entailment",
    "Entities",
    "Length",
    "Meteor",
    "MoverScore",
    "Novelty",
    "Repetition",
    "Rouge",
]
