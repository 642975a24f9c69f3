"""Curves of several runs in one picture, and what all our pictures share: a figure drawn without a screen."""

import io
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyramidions.curves.training_log import TRAIN, Curve, TrainingLog

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that the colour-blind can tell apart (Okabe and Ito, 2008), each with a marker of its own.
STYLES = (
    *(("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D")),
    *(("#E69F00", "v"), ("#56B4E9", "P"), ("#000000", "X")),
)
_LINES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.3)), (0, (6, 2, 1, 2)), (0, (3, 1.5, 1, 1.5, 1, 1.5)))
_GREY = "#555555"
_GRID = "#E4E4E4"
_MARKERS = 25  # of a curve, at most
_NAME = 60  # characters of a run's name, at most
# The label of a panel, and the words that its measures begin with.
_PANELS = {"loss": ("loss", "nll_loss"), "ROUGE": ("rouge",), "sharpness": ("sharpness_",)}
_Drawn = Sequence[tuple[int, Curve]]  # curves of a panel, each with the number of its run


def draw_training(runs: Mapping[str, TrainingLog], kind: Literal["png", "svg"]) -> bytes:
    """Draw the curves of runs: a panel each for loss, ROUGE and sharpness, without those that have no data.

    A run has a colour and a marker, a measure or a layer has a line style. The training curve is thin, that of the
    first validation subset has markers.

    Args:
        runs: by name; at least one has a curve.
        kind: the format.

    Returns:
        The image; the same curves give the same bytes.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    panels = {label: drawn for label in _PANELS if (drawn := _drawn(label, list(runs.values())))}
    names = [literal(name if len(name) <= _NAME else f"…{name[1 - _NAME :]}") for name in runs]
    columns = max(1, min(len(runs), 100 // (max(map(len, names)) + 6)))
    figure = new_figure(8.5, 0.7 + 2.7 * len(panels) + 0.22 * -(-len(runs) // columns))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False).flatten()
    for (label, drawn), ax in zip(panels.items(), axes, strict=True):
        _draw_panel(ax, label, drawn, len(runs))
    axes[-1].set_xlabel("updates")
    axes[-1].xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 2.5, 5, 10], integer=True))
    axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    figure.align_ylabels()
    looks = [_look(number, len(runs)) for number in range(len(runs))]
    handles = [Line2D([], [], color=color, marker=marker, markersize=5) for color, marker in looks]
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
    return image(figure, kind)


def _drawn(label: str, logs: Sequence[TrainingLog]) -> _Drawn:
    """Return the curves of a panel: those of the training, and of the first validation subset."""
    validated = [next((curve.split for curve in log.curves if curve.split != TRAIN), TRAIN) for log in logs]
    found = [(n, curve) for n, log in enumerate(logs) for curve in log.of(*_PANELS[label])]
    return [(n, curve) for n, curve in found if curve.split in (TRAIN, validated[n])]


def _draw_panel(ax: "Axes", label: str, drawn: _Drawn, runs: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator, NullLocator

    measures = sorted({curve.measure for _, curve in drawn}, key=lambda measure: (len(measure), measure))
    style = {measure: _LINES[number % len(_LINES)] for number, measure in enumerate(measures)}
    for number, curve in drawn:
        _draw_curve(ax, curve, style[curve.measure], *_look(number, runs))
    key = [(Line2D([], [], color=_GREY, linestyle=style[m]), m.replace("sharpness_", "layer ")) for m in measures]
    if measures == ["loss"]:
        # The label of the panel says as much.
        key = []
    if len({curve.split == TRAIN for _, curve in drawn}) == 2:
        key.append((Line2D([], [], color=_GREY, linewidth=0.8), "training"))
        key.append((Line2D([], [], color=_GREY, marker="o", markersize=4), "validation"))
    ax.set_ylabel(label)
    values = [value for _, curve in drawn for _, value in curve.points]
    if label == "loss" and 0 < 2 * min(values) < max(values):
        # Runs differ at their ends, which a steep beginning would flatten.
        ax.set_yscale("log")
        ax.set_ylabel("loss (log scale)")
        ax.yaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 5, 10]))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(NullLocator())
    ax.grid(color=_GRID, linewidth=0.7)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if key:
        handles, words = map(list, zip(*key, strict=True))
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
        ax.legend(handles, words, frameon=False, fontsize="small", handlelength=2.8, **place)


def _draw_curve(ax: "Axes", curve: Curve, style: Any, color: Any, marker: str) -> None:
    updates, values = zip(*curve.points, strict=True)
    if curve.split == TRAIN:
        # A single point has no line.
        look: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.7, "marker": "." if len(updates) == 1 else "none"}
    else:
        every = -(-len(updates) // _MARKERS)
        look = {"linewidth": 1.4, "marker": marker, "markersize": 4, "markevery": every, "zorder": 3}
    ax.plot(updates, values, color=color, linestyle=style, **look)


def _look(number: int, runs: int) -> tuple[Any, str]:
    """Return colour and marker of a run."""
    color, marker = STYLES[number % len(STYLES)]
    if runs <= len(STYLES):
        return color, marker
    from matplotlib import colormaps

    return colormaps["turbo"](0.05 + 0.9 * number / (runs - 1)), marker


def literal(text: str) -> str:
    """Return text that matplotlib does not take for a formula."""
    return text.replace("$", r"\$")


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure; sizes in inches."""
    from matplotlib.figure import Figure

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    return Figure((width, height), layout="constrained", facecolor="white")


def image(figure: "Figure", kind: str = "png") -> bytes:
    """Return a figure as "png" or "svg"; the same figure gives the same bytes."""
    from matplotlib import rc_context

    buffer = io.BytesIO()
    # By default an SVG has random ids and the date.
    with rc_context({"svg.hashsalt": "pyramidions"}):
        figure.savefig(buffer, format=kind, dpi=140, metadata={"Date": None} if kind == "svg" else {})
    return buffer.getvalue()
