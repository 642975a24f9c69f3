"""The options of metrics."""

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar, get_args

import click

from pyramidions.scoring.metric import METRICS, MetricOptions

Command = TypeVar("Command", bound=Callable[..., Any])


def metric_options(command: Command) -> Command:
    """Give a command `--metrics`, as ``metrics``, and the fields of `MetricOptions`, as ``metric_options``."""
    names = [each.name for each in fields(MetricOptions)]

    @wraps(command)
    def with_options(*args: Any, metrics: str, **options: Any) -> Any:
        chosen = MetricOptions(**{name: options.pop(name) for name in names})
        return command(*args, metrics=metrics.split(","), metric_options=chosen, **options)

    made: Any = with_options
    for each in reversed(fields(MetricOptions)):
        # `str | None` is a str that may be absent.
        kind = next(kind for kind in (*get_args(each.type), each.type) if kind is not type(None))
        made = click.option(
            "--" + each.name.replace("_", "-"),
            type=kind,
            is_flag=kind is bool,
            default=each.default,
            show_default=each.default not in (None, False),
            help=each.metadata["help"],
        )(made)
    names_of_metrics = f"Metrics, with commas in between, of {', '.join(METRICS.names)}."
    return click.option("--metrics", default="rouge", show_default=True, help=names_of_metrics)(made)
