"""Figures 4, 5 and 6 of Pietruszka et al. (2022) from our own numbers, as PNG."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyramidions.curves.drawing import STYLES, image, literal, new_figure
from pyramidions.reproduce.results import Interval
from pyramidions.reproduce.topk import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_speed_ups(series: Mapping[str, Sequence[tuple[int, Interval]]], paper: tuple[int, float] | None) -> bytes:
    """Draw figure 4: speed-up of a training step over the vanilla model with as many layers.

    Args:
        series: by label, numbers of layers with speed-ups.
        paper: number of layers and speed-up that the paper states; None to leave it out.

    Returns:
        A PNG image.
    """
    figure = new_figure(7.0, 5.0)
    axes = figure.subplots()
    axes.axhline(1, color="#666666", linewidth=1.2, label="vanilla, as many layers")
    for number, (label, points) in enumerate(series.items()):
        colour, marker = STYLES[number % len(STYLES)]
        layers, speed_ups = zip(*points, strict=True)
        # Rounding may leave a value outside of its interval by the last digit.
        around = [(max(0.0, s.value - s.low), max(0.0, s.high - s.value)) for s in speed_ups]
        axes.errorbar(
            *(layers, [s.value for s in speed_ups]),
            yerr=list(zip(*around, strict=True)),
            color=colour,
            marker=marker,
            capsize=4,
            label=literal(label),
        )
    if paper is not None:
        star: dict[str, Any] = {"marker": "*", "color": "#000000", "markersize": 13, "linestyle": "none"}
        axes.plot(*paper, label="the paper's pyramidion (up to)", **star)
    numbers = {n for points in series.values() for n, _ in points} | ({paper[0]} if paper else set())
    axes.set_xticks(sorted(numbers))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("layers of the encoder, and as many of the decoder")
    axes.set_ylabel("speed-up of a training step (×)")
    axes.grid(axis="y", color="#DDDDDD")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return image(figure)


def draw_topk(points: Sequence[Point], value: Literal["seconds", "nccs"], caption: str) -> bytes:
    """Draw figure 5 (seconds) or 6 (nCCS): one panel for each k, over n.

    Args:
        points: what was measured.
        value: what is drawn.
        caption: where it was measured.

    Returns:
        A PNG image.
    """
    ks = sorted({point.k for point in points})
    columns = min(len(ks), 4)
    rows = -(-len(ks) // columns)
    figure = new_figure(max(3.0 * columns, 5.0), 3.0 * rows + 0.9)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    operators = list(dict.fromkeys(point.operator for point in points))
    for panel, k in zip(panels, ks, strict=False):
        for number, operator in enumerate(operators):
            _draw_operator(panel, [p for p in points if (p.k, p.operator) == (k, operator)], value, number, operator)
        panel.set_title(f"k = {k}", fontsize="medium")
        panel.set_xscale("log", base=2)
        panel.grid(color="#E4E4E4")
        panel.set_xlabel("n, vectors to choose from")
        if value == "seconds":
            panel.set_yscale("log")
    for panel in panels[len(ks) :]:
        panel.set_visible(False)
    panels[0].set_ylabel("seconds a batch" if value == "seconds" else "nCCS to hard top-k")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize="small")
    figure.suptitle(literal(caption), fontsize="small")
    return image(figure)


def _draw_operator(panel: "Axes", points: list[Point], value: str, number: int, operator: str) -> None:
    colour, marker = STYLES[number % len(STYLES)]
    kept = [(p.n, getattr(p, value)) for p in sorted(points, key=lambda p: p.n) if getattr(p, value) is not None]
    panel.plot(
        *([n for n, _ in kept], [y for _, y in kept]),
        color=colour,
        marker=marker,
        # Curves that coincide stay visible: later ones are thinner.
        markersize=max(8 - 1.2 * number, 3),
        linewidth=max(3.6 - 0.8 * number, 1.2),
        label=literal(operator),
    )
