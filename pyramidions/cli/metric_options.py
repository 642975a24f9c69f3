"""The options of metrics."""

from dataclasses import Field, fields
from typing import Any, get_args

import click

from pyramidions.base.arguments import flag_of
from pyramidions.cli.option_groups import option_group
from pyramidions.scoring.metric import METRICS, MetricOptions


def _option(field: "Field[Any]") -> Any:
    # `str | None` is a str that may be absent.
    kind = next(kind for kind in (*get_args(field.type), field.type) if kind is not type(None))
    return click.option(
        flag_of(field.name),
        type=kind,
        is_flag=kind is bool,
        default=field.default,
        show_default=field.default not in (None, False),
        help=field.metadata["help"],
    )


#: Gives a command `--metrics`, as ``metrics``, and the fields of `MetricOptions`, as ``metric_options``.
metric_options = option_group(
    click.option(
        "--metrics",
        default="rouge",
        show_default=True,
        callback=lambda _context, _option, names: names.split(","),
        help=f"Metrics, with commas in between, of {', '.join(METRICS.names)}.",
    ),
    *map(_option, fields(MetricOptions)),
    name="metric_options",
    kind=MetricOptions,
)
