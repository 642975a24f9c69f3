"""The metrics: each is a file of this folder and a line here."""

from pyramidions.scoring.metrics.apes_src import ApesSrc
from pyramidions.scoring.metrics.bertscore import BertScore
from pyramidions.scoring.metrics.capitalized import Capitalized
from pyramidions.scoring.metrics.coverage import Coverage
from pyramidions.scoring.metrics.entities import Entities
from pyramidions.scoring.metrics.length import Length
from pyramidions.scoring.metrics.meteor import Meteor
from pyramidions.scoring.metrics.moverscore import MoverScore
from pyramidions.scoring.metrics.novelty import Novelty
from pyramidions.scoring.metrics.repetition import Repetition
from pyramidions.scoring.metrics.rouge import Rouge

__all__ = [
    "ApesSrc",
    "BertScore",
    "Capitalized",
    "Coverage",
    "Entities",
    "Length",
    "Meteor",
    "MoverScore",
    "Novelty",
    "Repetition",
    "Rouge",
]
