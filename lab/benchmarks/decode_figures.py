"""What the benchmark of sparse parts shows: a table and a picture of the same bars."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Bar:
    """One kind of layer.

    Attributes:
        group: what it is compared within; the first of a group is the dense one.
        name: of the kind.
        weights: of a layer, millions.
        megabytes: that a step reads of it.
        milliseconds: of a step.
        least: milliseconds in which this machine reads so many bytes.
        parts: milliseconds of its parts, timed alone; the rest are norms, residual connections and what is between.
    """

    group: str
    name: str
    weights: float
    megabytes: float
    milliseconds: float
    least: float
    parts: Mapping[str, float] = field(default_factory=dict)


def table(bars: Sequence[Bar]) -> str:
    """Return all bars as rows of Markdown, each beside the first of its group."""
    names = list(dict.fromkeys(part for bar in bars for part in bar.parts))
    head = ["", "", "weights, M", "MB read", "ms", "dense / it", "by bytes", "share of the rate", *names]
    rows = [head, ["---"] * len(head)]
    for bar in bars:
        dense = next(other for other in bars if other.group == bar.group)
        faster, smaller = dense.milliseconds / bar.milliseconds, dense.megabytes / bar.megabytes
        figures = [f"{bar.weights:.2f}", f"{bar.megabytes:.2f}", f"{bar.milliseconds:.3f}", f"{faster:.2f}x"]
        parts = [f"{bar.parts[name]:.3f}" if name in bar.parts else "" for name in names]
        rows.append([bar.group, bar.name, *figures, f"{smaller:.2f}x", f"{bar.least / bar.milliseconds:.0%}", *parts])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def draw(bars: Sequence[Bar], path: Path) -> None:
    """Draw milliseconds over the weights of a layer, and the bars of each group, in their parts."""
    import matplotlib

    logging.getLogger("matplotlib").setLevel(logging.WARNING)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    groups = list(dict.fromkeys(bar.group for bar in bars))
    figure, panels = pyplot.subplots(1, 1 + len(groups), figsize=(3.6 * (1 + len(groups)), 4.6))
    layers = [bar for bar in bars if bar.parts]
    for name in dict.fromkeys(bar.name for bar in layers):
        points = [(bar.weights, bar.milliseconds) for bar in layers if bar.name == name]
        panels[0].plot(*zip(*points, strict=True), "-o", markersize=4, label=name)
    panels[0].set_xscale("log")
    panels[0].set_yscale("log")
    first = [bar.weights for bar in layers if bar.name == layers[0].name]
    panels[0].set_xticks(first, [f"{weights:.3g}" for weights in first])
    panels[0].set_xticks([], minor=True)
    panels[0].set_xlabel("weights of a layer, millions")
    panels[0].set_ylabel("ms of a layer and token")
    panels[0].legend(fontsize="x-small")
    parts = list(dict.fromkeys(part for bar in bars for part in bar.parts))
    for axes, group in zip(panels[1:], groups, strict=True):
        for place, bar in enumerate(each for each in bars if each.group == group):
            stacked = {**bar.parts, "rest": max(0.0, bar.milliseconds - sum(bar.parts.values()))}
            bottom = 0.0
            for part, height in stacked.items():
                color = f"C{parts.index(part)}" if part in parts else "0.7"
                axes.bar(place, height, bottom=bottom, color=color, label=None if place else part)
                bottom += height
            axes.hlines(
                bar.least, place - 0.4, place + 0.4, colors="k", label=None if place else "its bytes at the rate"
            )
        names = [bar.name for bar in bars if bar.group == group]
        axes.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize="x-small")
        axes.set_title(group, fontsize="medium")
        axes.set_ylabel("ms of a layer and token")
        if any(bar.parts for bar in bars if bar.group == group):
            axes.legend(fontsize="x-small", loc="upper right")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
