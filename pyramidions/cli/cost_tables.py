"""Costs as plain text: configs side by side, and counted beside measured figures."""

from collections.abc import Mapping, Sequence

from pyramidions.cli.outputs import columns
from pyramidions.runs.measure import Comparison, Cost, CostPart, Lengths

_LEGEND = """
10^9: multiplications of one forward pass as in training; a step with its backward pass commonly counts three times.
MB:   10^6 bytes kept for the backward pass: float32, fused attention, a byte a value for dropout (after ReLU none).
""".strip()


def cost_table(costs: Mapping[str, Cost]) -> str:
    """Return tables of work and memory by part, each config beside the first of ``costs``, by name."""
    sizes = {name: f"{cost.parameters / 1e6:.1f} million parameters" for name, cost in costs.items()}
    lines = [f"{name}: {_described(cost.lengths)}, {sizes[name]}" for name, cost in costs.items()]
    work = {name: cost.multiplications() for name, cost in costs.items()}
    kept = {name: cost.activations for name, cost in costs.items()}
    lines += ["", *_by_part("10^9", work, "{:,.3f}", 1e9), "", *_by_part("MB", kept, "{:,.1f}", 1e6), "", _LEGEND]
    if len(costs) > 1:
        lines.append(f"less: how many times less than {next(iter(costs))}.")
    return "\n".join(lines)


def _by_part(unit: str, figures: Mapping[str, Mapping[CostPart, int]], form: str, divisor: float) -> list[str]:
    """Return a line for each part, with the figure of each config, its share, and how many times less it is."""
    rows = [[unit], *([part.value] for part in CostPart), ["total"]]
    first: list[int] = []
    for name, counts in figures.items():
        total = sum(counts.values())
        figure = [*(counts[part] for part in CostPart), total]
        cells = [[name if len(name) <= 30 else f"...{name[-27:]}", "share", *(["less"] if first else [])]]
        for n, count in enumerate(figure):
            less = [f"{first[n] / count:.2f}x" if first[n] and count else ""] if first else []
            cells.append([form.format(count / divisor), f"{100 * count / total:.1f}%", *less])
        rows = [[*row, *more] for row, more in zip(rows, cells, strict=True)]
        first = first or figure
    return columns(rows)


def _described(lengths: Lengths) -> str:
    return (
        f"documents of {lengths.source} tokens, summaries of {lengths.target}, batch {lengths.batch}, "
        f"vocabulary {lengths.vocab_size}"
    )


def comparison_table(name: str, comparison: Comparison) -> str:
    """Return what is counted without computing and what is counted in a run, by part."""
    rows: list[Sequence[str]] = [("part", "matrix products counted", "in a run", "bytes counted", "in a run")]
    for part in CostPart:
        figures = [cost.products[part] for cost in comparison] + [cost.activations[part] for cost in comparison]
        rows.append((part, *(f"{figure:,}" for figure in figures)))
    verdict = "All figures are equal." if comparison.agrees() else "Figures differ."
    return "\n".join([f"{name}, small: {_described(comparison.counted.lengths)}", *columns(rows), verdict])
