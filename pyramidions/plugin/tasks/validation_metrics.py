"""Which metrics validation computes."""

from dataclasses import fields
from typing import Any, get_type_hints

from pyramidions.base.arguments import fits, rule_of
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_options
from pyramidions.plugin.tasks.config import ScoredTaskConfig
from pyramidions.scoring import Metric, MetricOptions
from pyramidions.scoring.score import check_names, metrics_of


def metric_names(cfg: Any) -> list[str]:
    """Return the names of the metrics that the user asked for, in the order of their columns; none of other tasks.

    Raises:
        UserError: an unknown name, or one that comes twice.
    """
    if not hasattr(cfg, "eval_metrics"):
        return []
    named = cfg.eval_metrics.split(",") if cfg.eval_metrics else []
    if named:
        check_names(named)
    return ["rouge", *(name for name in named if name != "rouge")] if cfg.eval_rouge else named


def validation_metrics(cfg: ScoredTaskConfig) -> dict[str, Metric]:
    """Make these metrics.

    Raises:
        UserError: options without metrics; an unknown option, or one of the wrong type; or a metric lacks an option.
    """
    names = metric_names(cfg)
    given = parse_options(cfg.eval_metric_args, "eval_metric_args")
    if given and not names:
        raise UserError("--eval-metric-args are options of --eval-metrics, which is not given.")
    hints = get_type_hints(MetricOptions)
    for name, value in given.items():
        if name not in hints:
            known = ", ".join(each.name for each in fields(MetricOptions))
            raise UserError(f"`eval_metric_args` knows no option {name!r}, only {known}.")
        if not fits(value, hints[name]):
            raise UserError(f"{name!r} in `eval_metric_args` must be {rule_of(hints[name])}, but is {value!r}.")
    return metrics_of(names, MetricOptions(**given)) if names else {}
