"""How good summaries are: each metric is a file of this folder and a line of `METRICS`."""

from pyramidions.scoring.metric import Metric
from pyramidions.scoring.rouge import ROUGE

#: In the order of their columns.
METRICS: tuple[Metric, ...] = (ROUGE,)
#: The headings of all figures by their names: whatever shows, stores or chooses by a metric takes both from here.
LABELS: dict[str, str] = {name: label for metric in METRICS for name, label in metric.labels.items()}

__all__ = ["LABELS", "METRICS", "ROUGE", "Metric"]
