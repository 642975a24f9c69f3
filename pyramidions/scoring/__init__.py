"""How good summaries are: metrics, and the bootstrap over documents that all of them share."""

from pyramidions.scoring import metrics as _metrics  # noqa: F401  registers them
from pyramidions.scoring.metric import METRICS as METRICS
from pyramidions.scoring.metric import Example as Example
from pyramidions.scoring.metric import Figure as Figure
from pyramidions.scoring.metric import Metric as Metric
from pyramidions.scoring.metric import MetricOptions as MetricOptions
from pyramidions.scoring.summary_check import CheckedSummary as CheckedSummary
from pyramidions.scoring.summary_check import check_summary as check_summary
from pyramidions.text.support import SummarySentence as SummarySentence

#: The figures of all metrics by their names: whatever shows, stores or chooses by a metric takes them from here.
FIGURES: dict[str, Figure] = {
    name: figure for metric in METRICS.names for name, figure in METRICS[metric].figures.items()
}


def metric_of(figure: str) -> str:
    """Return the name of the metric that a figure in `FIGURES` belongs to."""
    return next(name for name in METRICS.names if figure in METRICS[name].figures)
