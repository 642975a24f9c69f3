"""The option with the precision in which trained models compute."""

from collections.abc import Callable
from typing import Any

import click

from pyramidions.inference.precision import AUTO, PRECISIONS


def precision_option(default: str | None) -> Callable[[Any], Any]:
    """Add `--precision`; without a default, it is known whether it was given."""
    shown = "" if default else f"  [default: {AUTO}, of a trained model]"
    return click.option(
        "--precision",
        type=click.Choice((AUTO, *PRECISIONS)),
        default=default,
        show_default=default is not None,
        help="Precision of the model. auto: bfloat16 where the machine has instructions for it, but float32 for small "
        "models on a CPU; int8: 8-bit weights, on a CPU." + shown,
    )
