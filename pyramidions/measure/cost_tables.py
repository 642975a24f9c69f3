"""Costs as plain text: configs side by side, counted beside measured figures, the paper's claims."""

import textwrap
from collections.abc import Callable, Mapping, Sequence

from pyramidions.measure.check import Comparison
from pyramidions.measure.claims import Claim
from pyramidions.measure.cost import Cost, Lengths
from pyramidions.measure.parts import Part

_LEGEND = """
10^9: multiplications of one forward pass as in training; a step with its backward pass commonly counts three times.
MB:   10^6 bytes kept for the backward pass: float32, fused attention, a byte a value for dropout (after ReLU none).
""".strip()

_LEGEND_OF_COLUMNS = """
memory: keys and values of what the decoder reads; the other columns are attention (scores and mixes),
projections (proj) and feed-forward (ffn) of the encoder and the decoder.
""".strip()

#: heads of the columns where each config has a line
_COLUMNS = {
    Part.ENCODER_ATTENTION: "enc attn",
    Part.ENCODER_PROJECTIONS: "enc proj",
    Part.ENCODER_FEED_FORWARD: "enc ffn",
    Part.POOLING: "pooling",
    Part.DECODER_ATTENTION: "dec attn",
    Part.CROSS_ATTENTION: "cross attn",
    Part.DECODER_PROJECTIONS: "dec proj",
    Part.MEMORY_PROJECTIONS: "memory",
    Part.DECODER_FEED_FORWARD: "dec ffn",
    Part.OUTPUT: "output",
}


def cost_table(costs: Mapping[str, Cost]) -> str:
    """Return a table by part with ratios to the first of ``costs``, by name; more than two have a line each."""
    if len(costs) > 2:
        return _line_each(costs)
    (name, first), *others = costs.items()
    lines = [f"{name}: {_described(cost.lengths)}" for name, cost in costs.items()]
    lines += ["", f"{'':28}{_short(name):>32}" + "".join(f"{_short(other):>50}" for other, _ in others)]
    heads = f"{'10^9':>14}{'less':>8}{'share':>8}{'MB':>12}{'less':>8}" * len(others)
    lines.append(f"{'part':28}{'10^9':>12}{'share':>8}{'MB':>12}{heads}")
    for part in (*Part, None):
        cells = (_compared(cost, first, part) for _, cost in others)
        lines.append(
            f"{part or 'total':28}{_work_cells(first, part)}{_megabytes(first, part)}{''.join(cells)}".rstrip()
        )
    sizes = [f"{cost.parameters / 1e6:.1f} million" for cost in costs.values()]
    lines.append(f"{'parameters':28}{sizes[0]:>32}" + "".join(f"{size:>50}" for size in sizes[1:]))
    return "\n".join([*lines, "", _LEGEND, *([_less(name)] if others else [])])


def _line_each(costs: Mapping[str, Cost]) -> str:
    width, first = max(map(len, costs)), next(iter(costs.values()))
    heads = [*_COLUMNS.values(), "total", "less", "MB", "parameters"]
    lines = [f"{'10^9':{width}}{''.join(f'{head:>11}' for head in heads)}"]
    for name, cost in costs.items():
        cells = [*(f"{_work(cost, part) / 1e9:.3f}" for part in (*_COLUMNS, None))]
        cells += [f"{first.total() / cost.total():.2f}x", f"{_kept(cost, None) / 1e6:,.1f}"]
        cells.append(f"{cost.parameters / 1e6:.1f}M")
        lines.append(f"{name:{width}}{''.join(f'{cell:>11}' for cell in cells)}")
    lines += ["", *(f"{name}: {_described(cost.lengths)}" for name, cost in costs.items())]
    return "\n".join([*lines, "", _LEGEND, _less(next(iter(costs))), _LEGEND_OF_COLUMNS])


def _less(name: str) -> str:
    return f"less: how many times less than {name}."


def _short(name: str) -> str:
    return name if len(name) <= 30 else f"...{name[-27:]}"


def _described(lengths: Lengths) -> str:
    return (
        f"documents of {lengths.source} tokens, summaries of {lengths.target}, batch {lengths.batch}, "
        f"vocabulary {lengths.vocab_size}"
    )


def _work(cost: Cost, part: Part | None) -> int:
    return cost.total() if part is None else cost.multiplications()[part]


def _kept(cost: Cost, part: Part | None) -> int:
    return sum(cost.activations.values()) if part is None else cost.activations[part]


def _work_cells(cost: Cost, part: Part | None, less: str = "") -> str:
    work = _work(cost, part)
    return f"{work / 1e9:12,.3f}{less}{100 * work / cost.total():7.1f}%"


def _megabytes(cost: Cost, part: Part | None) -> str:
    return f"{_kept(cost, part) / 1e6:12,.1f}"


def _compared(cost: Cost, first: Cost, part: Part | None) -> str:
    def less(of: Callable[[Cost, Part | None], int]) -> str:
        before, after = of(first, part), of(cost, part)
        if not before or not after:
            return f"{'':8}"
        return f"{f'{before / after:.2f}x' if before < 1000 * after else f'{before / after:.0f}x':>8}"

    return f"  {_work_cells(cost, part, less(_work))}{_megabytes(cost, part)}{less(_kept)}"


def comparison_table(name: str, comparison: Comparison) -> str:
    """Return what is counted without computing and what is counted in a run, by part."""
    lines = [
        f"{name}, small: {_described(comparison.counted.lengths)}",
        f"{'':28}{'matrix products':>30}{'bytes kept':>30}",
        f"{'part':28}" + f"{'counted':>15}{'in a run':>15}" * 2,
    ]
    for part in Part:
        figures = [cost.products[part] for cost in comparison] + [cost.activations[part] for cost in comparison]
        lines.append(f"{part:28}" + "".join(f"{figure:15,}" for figure in figures))
    return "\n".join([*lines, "All figures are equal." if comparison.agrees() else "Figures differ."])


def claim_table(claims: Sequence[Claim]) -> str:
    """Return claims with what they assume below each."""
    lines = [f"{'The paper claims':92}{'paper':>16}{'ours':>14}"]
    last = ""
    for claim in claims:
        lines.append(f"{'' if claim.claim == last else claim.claim:92}{claim.paper:>16}{claim.ours_in_words():>14}")
        lines += textwrap.wrap(claim.assumptions, 116, initial_indent="    ", subsequent_indent="    ")
        last = claim.claim
    return "\n".join(lines)


def order_table(orders: Sequence[Claim]) -> str:
    """Return what doubling each letter of table 1 does, a line each."""
    lines = [f"{'Table 1: scores and mixes when a letter is doubled':54}{'paper':>8}{'ours':>8}"]
    lines += [f"{c.claim:54}{c.paper:>8}{c.ours_in_words():>8}  {c.assumptions}".rstrip() for c in orders]
    return "\n".join(lines)
