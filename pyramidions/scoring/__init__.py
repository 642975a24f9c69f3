"""How good summaries are: metrics, and the bootstrap over documents that all of them share."""

from pyramidions.scoring import metrics as _metrics  # noqa: F401  registers them
from pyramidions.scoring.metric import METRICS, Example, Figure, Metric, MetricOptions
from pyramidions.scoring.summary_check import CheckedSummary, check_summary
from pyramidions.text.support import SummarySentence

#: The figures of all metrics by their names: whatever shows, stores or chooses by a metric takes them from here.
FIGURES: dict[str, Figure] = {
    name: figure for metric in METRICS.names for name, figure in METRICS[metric].figures.items()
}


def metric_of(figure: str) -> str:
    """Return the name of the metric that a figure in `FIGURES` belongs to."""
    return next(name for name in METRICS.names if figure in METRICS[name].figures)


__all__ = [
    "FIGURES",
    "METRICS",
    "CheckedSummary",
    "Example",
    "Figure",
    "Metric",
    "MetricOptions",
    "SummarySentence",
    "check_summary",
    "metric_of",
]
