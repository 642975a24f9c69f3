"""Figure 4 of Pietruszka et al. (2022) from our own numbers, as PNG."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyramidions.curves.drawing import STYLES, image, literal, new_figure
from pyramidions.reproduce.results import Interval


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
