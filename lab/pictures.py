"""The plots of the report."""

import io
import logging
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from lab.seeds import SeededRow

_LOOK = {"capsize": 4, "grid": True, "legend": False}


def _literal(text: str) -> str:
    """Return text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def _new_figure(width: float, height: float) -> Figure:
    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    return Figure((width, height), layout="constrained", facecolor="white")  # inches


def _image(figure: Figure) -> bytes:
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140)
    return buffer.getvalue()


def draw_speed_ups(lines: pd.DataFrame, claimed: Mapping[str, float]) -> bytes | None:
    """Draw figure 4 as PNG: the speed-up of a training step over the vanilla model with as many layers.

    None if nothing was timed. `claimed` is what the paper states, by the row's name.
    """
    if "train_speed_up" not in lines:
        return None
    lines = lines[lines.train_speed_up.notna() & (lines.config != lines.reference)]
    if lines.empty:
        return None
    figure = _new_figure(7.0, 5.0)
    axes = figure.subplots()
    # Only what was measured alike is joined by a line.
    kinds = [lines.row.str.rpartition("-")[0], lines.scale, lines.device]
    for kind, points in lines.sort_values("encoder_layers").groupby(kinds, sort=False):
        around = _around(points.train_speed_up, points.train_speed_up_low, points.train_speed_up_high)
        label = _literal(", ".join(map(str, kind)))
        points.plot("encoder_layers", "train_speed_up", yerr=around, marker="o", label=label, ax=axes, **_LOOK)
    for name, speed_up in claimed.items():
        for layers in lines.encoder_layers[(lines.row == name) & (lines.scale == "paper")]:
            axes.plot(layers, speed_up, "k*", markersize=13, label=f"the paper's {name} (up to)")
    axes.axhline(1, color="#666666", label="vanilla, as many layers")
    axes.set(xlabel="layers of the encoder, and as many of the decoder", ylabel="speed-up of a training step (×)")
    axes.set_xticks(lines.encoder_layers.unique())
    axes.set_ylim(bottom=0)
    return _image(figure)


def draw_losses(rows: Sequence[SeededRow]) -> bytes | None:
    """Draw losses with the own document and with another as PNG, the best row at the top; None without losses."""
    known = sorted((row for row in rows if "own" in row.estimates), key=lambda row: -row.estimates["own"].mean)
    if not known:
        return None
    figure = _new_figure(7.0, 1.4 + 0.4 * len(known))
    axes = figure.subplots()
    for name, label, place in (("own", "its own document", 0.1), ("another", "another document", -0.1)):
        values = pd.DataFrame([row.estimates[name] for row in known])
        around = _around(values["mean"], values.low, values.high)[0]
        axes.errorbar(values["mean"], values.index + place, xerr=around, fmt="o", capsize=3, label=label)
    axes.set_yticks(range(len(known)), [_literal(row.name) for row in known])
    axes.set_xlabel("loss of summaries (nats a token), with 95% intervals")
    axes.grid(axis="x")
    return _image(figure)


def draw_poolings(lines: pd.DataFrame) -> bytes:
    """Draw the losses of rows over the bytes that their decoders may read, a point a seed, as PNG."""
    figure = _new_figure(7.0, 5.0)
    axes = figure.subplots()
    for name, points in lines.groupby("row", sort=False):
        axes.plot(points.bytes_a_token, points.loss_own, "o", label=_literal(str(name)))
    axes.set_xscale("symlog", linthresh=1)
    axes.set(xlabel="what the decoder may read (bytes a token)", ylabel="loss (nats a token)")
    axes.grid(alpha=0.4)
    return _image(figure)


def _around(value: pd.Series, low: pd.Series, high: pd.Series) -> list[list[pd.Series]]:
    """Return how far an interval reaches, as pandas draws it; rounding may leave a value outside of it."""
    return [[(value - low).clip(lower=0), (high - value).clip(lower=0)]]
