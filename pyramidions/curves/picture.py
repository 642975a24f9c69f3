"""Curves of several runs in one picture: loss, ROUGE and selection sharpness over the updates."""

import io
import logging
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from pyramidions.curves.training_log import TRAIN, Curve, TrainingLog
from pyramidions.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that the colour-blind tell apart (Okabe and Ito, 2008), each with a marker of its own.
_RUNS = (
    *(("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D")),
    *(("#E69F00", "v"), ("#56B4E9", "P"), ("#000000", "X")),
)
_LINES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1, 1.3)), (0, (6, 2, 1, 2)), (0, (3, 1.5, 1, 1.5, 1, 1.5)))
_GREY = "#555555"
_MARKERS = 25  # of a curve, at most
_NAME = 60  # characters of a run's name, at most
_CROWD = 10  # curves in a panel above which their lines are finer

# What is written beside a panel, and the words that its measures begin with.
_PANELS = {"loss": ("loss", "nll_loss"), "ROUGE": ("rouge",), "sharpness": ("sharpness_",)}


def require_matplotlib() -> None:
    """Refuse where nothing can be drawn.

    Raises:
        UserError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise UserError("A plot needs matplotlib, which is not installed: pip install 'pyramidions[bench]' brings it.")


def drawn_split(log: TrainingLog) -> str | None:
    """Return the validation subset that is drawn, the first of the log; None where there was no validation."""
    return next((curve.split for curve in log.curves if curve.split != TRAIN), None)


def draw_training(runs: Mapping[str, TrainingLog], image: Literal["png", "svg"]) -> bytes:
    """Draw the curves of runs: a panel each for loss, ROUGE and sharpness, those without data left out.

    A run has a colour and a marker, a measure or a layer the style of its line. The training curve is thin, that of
    the first validation subset has markers.

    Args:
        runs: by name; one of them at least has a curve.
        image: the format.

    Returns:
        The image; the same curves give the same bytes.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    panels = {label: curves for label in _PANELS if (curves := _drawn(label, list(runs.values())))}
    columns = max(1, min(len(runs), 100 // (max(len(_shown(name)) for name in runs) + 6)))
    # Inches; validation curves are what needs room.
    heights = [2.4 + 0.04 * min(sum(c.split != TRAIN for _, c in curves), 30) for curves in panels.values()]
    height = 0.7 + sum(heights) + 0.22 * -(-len(runs) // columns)
    figure = Figure((8.5, height), layout="constrained", facecolor="white")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights).flatten()
    for (label, curves), ax in zip(panels.items(), axes, strict=True):
        _draw_panel(ax, label, curves, len(runs))
    axes[-1].set_xlabel("updates")
    axes[-1].xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 2.5, 5, 10], integer=True))
    axes[-1].xaxis.set_major_formatter(FuncFormatter(lambda update, _: f"{update:,.0f}"))
    figure.align_ylabels()
    handles = [
        Line2D([], [], color=colour, marker=marker, markersize=5, linewidth=1.8)
        for colour, marker in (_look(number, len(runs)) for number in range(len(runs)))
    ]
    names = [_shown(name) for name in runs]
    figure.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, fontsize="small")
    buffer = io.BytesIO()
    # Names within an SVG are drawn by chance, and its date is today's, unless one says otherwise.
    with rc_context({"svg.hashsalt": "pyramidions"}):
        figure.savefig(buffer, format=image, dpi=140, metadata={"Date": None} if image == "svg" else {})
    return buffer.getvalue()


def _drawn(label: str, logs: Sequence[TrainingLog]) -> list[tuple[int, Curve]]:
    """Return the curves of a panel, each with the number of its run."""
    splits = [(TRAIN, drawn_split(log)) for log in logs]
    return [(n, curve) for n, log in enumerate(logs) for curve in log.of(*_PANELS[label]) if curve.split in splits[n]]


def _draw_panel(ax: "Axes", label: str, curves: Sequence[tuple[int, Curve]], runs: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator, NullLocator

    measures = sorted({curve.measure for _, curve in curves}, key=lambda measure: (len(measure), measure))
    style = {measure: _LINES[number % len(_LINES)] for number, measure in enumerate(measures)}
    both = len({curve.split == TRAIN for _, curve in curves}) == 2
    fine = sum(curve.split != TRAIN for _, curve in curves) > _CROWD
    for number, curve in curves:
        _draw_curve(ax, curve, style[curve.measure], *_look(number, runs), both=both, fine=fine)
    key = [(Line2D([], [], color=_GREY, linestyle=style[m], linewidth=1.4), _measure(m)) for m in measures]
    if measures == ["loss"]:
        # The label beside the panel says as much.
        key = []
    if both:
        key.append((Line2D([], [], color=_GREY, linewidth=0.8, alpha=0.8), "training"))
        key.append((Line2D([], [], color=_GREY, linewidth=1.5, marker="o", markersize=4), "validation"))
    ax.set_ylabel(label)
    values = [value for _, curve in curves for _, value in curve.points]
    if label == "loss" and 0 < 2 * min(values) < max(values):
        # Runs differ in the end, and a steep beginning would flatten that.
        ax.set_yscale("log")
        ax.set_ylabel("loss (log scale)")
        ax.yaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 5, 10]))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_locator(NullLocator())
    ax.grid(color="#E4E4E4", linewidth=0.7)
    ax.set_axisbelow(True)
    ax.margins(x=0.02)
    ax.spines[["top", "right"]].set_visible(False)
    if key:
        handles, words = zip(*key, strict=True)
        ax.legend(
            *(list(handles), list(words)),
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
            frameon=False,
            fontsize="small",
            handlelength=2.8,
        )


def _draw_curve(ax: "Axes", curve: Curve, style: Any, colour: Any, marker: str, *, both: bool, fine: bool) -> None:
    updates, values = zip(*curve.points, strict=True)
    line: dict[str, Any] = {"color": colour, "linestyle": style}
    if curve.split == TRAIN:
        # A single point has no line.
        line |= {"linewidth": 0.8, "alpha": 0.65 if both else 1.0, "marker": "." if len(updates) == 1 else "none"}
    else:
        every = -(-len(updates) // _MARKERS)
        line |= {"linewidth": 1.0 if fine else 1.5, "marker": marker, "markersize": 3 if fine else 4}
        line |= {"markevery": every, "zorder": 3}
    ax.plot(updates, values, **line)


def _measure(measure: str) -> str:
    layer = measure.removeprefix("sharpness_")
    return measure if layer == measure else f"layer {layer}"


def _look(number: int, runs: int) -> tuple[Any, str]:
    """Return colour and marker of a run."""
    colour, marker = _RUNS[number % len(_RUNS)]
    if runs <= len(_RUNS):
        return colour, marker
    from matplotlib import colormaps

    return colormaps["turbo"](0.05 + 0.9 * number / (runs - 1)), marker


def _shown(name: str) -> str:
    """Return a name at a length that fits, which matplotlib shows as it is, not as a formula."""
    short = name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"
    return short.replace("$", r"\$")
