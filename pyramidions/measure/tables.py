"""Costs as plain text: configs side by side, closed forms beside torch's counts, claims beside ours."""

import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyramidions.measure.activations import NotModelledError, activations
from pyramidions.measure.check import Comparison
from pyramidions.measure.claims import Claim
from pyramidions.measure.cost import Multiplications, multiplications, parameters
from pyramidions.measure.shapes import Lengths, Part
from pyramidions.models import PyramidionConfig

_LEGEND = """
10^9: multiplications of one forward pass as in training; a step with its backward pass commonly counts three times.
MB:   10^6 bytes kept for the backward pass: float32, fused attention, a byte a value for dropout (after ReLU none).
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


class Cost(NamedTuple):
    """What a config costs.

    Attributes:
        name: as tables call it.
        lengths: of the batch.
        multiplications: of a forward pass.
        activations: bytes by part; None where they are not modelled.
        not_modelled: why so; empty otherwise.
        parameters: of the model.
    """

    name: str
    lengths: Lengths
    multiplications: Multiplications
    activations: dict[Part, int] | None
    not_modelled: str
    parameters: int

    def as_json(self) -> dict[str, Any]:
        """Return all figures as plain values."""
        return {
            "name": self.name,
            "lengths": self.lengths._asdict(),
            "matrix_products": self.multiplications.products,
            "weighted_sums": self.multiplications.weighted,
            "multiplications": self.multiplications.total(),
            "activation_bytes": self.activations,
            "not_modelled": self.not_modelled or None,
            "parameters": self.parameters,
        }


def cost_of(name: str, config: PyramidionConfig, lengths: Lengths) -> Cost:
    """Count everything of a config.

    Raises:
        UserError: a config that breaks a rule, a length below 1, or a kind without closed form of its multiplications.
    """
    counted = multiplications(config, lengths)
    kept, not_modelled = None, ""
    try:
        kept = activations(config, lengths)
    except NotModelledError as error:
        not_modelled = str(error)
    return Cost(name, lengths, counted, kept, not_modelled, parameters(config, lengths.vocab_size))


def cost_table(costs: Sequence[Cost]) -> str:
    """Return a table by part, with ratios to the first of ``costs``; of more than two a line each."""
    first, *others = costs
    if len(costs) > 2:
        return _line_each(costs)
    lines = [f"{cost.name}: {_described(cost.lengths)}" for cost in costs]
    lines += ["", f"{'':28}{_short(first.name):>32}" + "".join(f"{_short(c.name):>50}" for c in others)]
    heads = f"{'10^9':>14}{'less':>8}{'share':>8}{'MB':>12}{'less':>8}" * len(others)
    lines.append(f"{'part':28}{'10^9':>12}{'share':>8}{'MB':>12}{heads}")
    for part in (*Part, None):
        cells = (_compared(cost, first, part) for cost in others)
        lines.append(f"{part or 'total':28}{_amounts(first, part)}{''.join(cells)}".rstrip())
    sizes = [f"{cost.parameters / 1e6:.1f} million" for cost in costs]
    lines.append(f"{'parameters':28}{sizes[0]:>32}" + "".join(f"{size:>50}" for size in sizes[1:]))
    lines += ["", _LEGEND]
    if others:
        lines.append(f"less: how many times less than {first.name}.")
    lines += [f"-:    {cost.name}: {cost.not_modelled}" for cost in costs if cost.not_modelled]
    return "\n".join(lines)


def _line_each(costs: Sequence[Cost]) -> str:
    first, width = costs[0], max(len(cost.name) for cost in costs)
    heads = [*_COLUMNS.values(), "total", "less", "MB", "parameters"]
    lines = [f"{'10^9':{width}}{''.join(f'{head:>11}' for head in heads)}"]
    for cost in costs:
        work, total = cost.multiplications.by_part(), cost.multiplications.total()
        kept = _kept(cost, None)
        cells = [*(f"{work[part] / 1e9:.3f}" for part in _COLUMNS), f"{total / 1e9:.3f}"]
        cells += [f"{first.multiplications.total() / total:.2f}x", "-" if kept is None else f"{kept / 1e6:,.1f}"]
        cells.append(f"{cost.parameters / 1e6:.1f}M")
        lines.append(f"{cost.name:{width}}{''.join(f'{cell:>11}' for cell in cells)}")
    lines += ["", *(f"{cost.name}: {_described(cost.lengths)}" for cost in costs), "", _LEGEND]
    lines.append(f"less: how many times less than {first.name}.")
    lines.append(
        "memory: keys and values of what the decoder reads; the other columns are attention (scores and mixes),"
    )
    lines.append("projections (proj) and feed-forward (ffn) of the encoder and the decoder.")
    return "\n".join([*lines, *(f"-:    {cost.name}: {cost.not_modelled}" for cost in costs if cost.not_modelled)])


def _short(name: str) -> str:
    return name if len(name) <= 30 else f"...{name[-27:]}"


def _described(lengths: Lengths) -> str:
    return (
        f"documents of {lengths.source} tokens, summaries of {lengths.target}, batch {lengths.batch}, "
        f"vocabulary {lengths.vocab_size}"
    )


def _work(cost: Cost, part: Part | None) -> int:
    return cost.multiplications.total() if part is None else cost.multiplications.by_part()[part]


def _kept(cost: Cost, part: Part | None) -> int | None:
    if cost.activations is None:
        return None
    return sum(cost.activations.values()) if part is None else cost.activations[part]


def _amounts(cost: Cost, part: Part | None) -> str:
    work, kept = _work(cost, part), _kept(cost, part)
    share = 100 * work / cost.multiplications.total()
    return f"{work / 1e9:12,.3f}{share:7.1f}%" + (f"{'-':>12}" if kept is None else f"{kept / 1e6:12,.1f}")


def _compared(cost: Cost, first: Cost, part: Part | None) -> str:
    def less(of: Callable[[Cost, Part | None], int | None]) -> str:
        before, after = of(first, part), of(cost, part)
        if not before or not after:
            return ""
        return f"{before / after:.2f}x" if before < 1000 * after else f"{before / after:.0f}x"

    amounts = _amounts(cost, part)
    return f"  {amounts[:12]}{less(_work):>8}{amounts[12:]}{less(_kept):>8}"


def comparison_table(name: str, comparison: Comparison) -> str:
    """Return what was counted and what torch counts, by part."""
    saved = comparison.saved
    lines = [
        f"{name}, small: {_described(comparison.lengths)}",
        f"{'':28}{'matrix products':>30}" + (f"{'bytes kept':>30}" if saved else ""),
        f"{'part':28}" + f"{'counted':>15}{'by torch':>15}" * (2 if saved else 1),
    ]
    for part in Part:
        pairs = [comparison.products[part], *([saved[part]] if saved else [])]
        lines.append(f"{part:28}" + "".join(f"{pair.counted:15,}{pair.measured:15,}" for pair in pairs))
    lines.append(f"{'parameters':28}{comparison.parameters.counted:15,}{comparison.parameters.measured:15,}")
    lines.append("Weighted sums of pooling are no matrix products: torch does not count them, they are left out here.")
    if comparison.not_modelled:
        lines.append(comparison.not_modelled)
    lines.append("All figures are equal." if comparison.agrees() else "Figures differ.")
    return "\n".join(lines)


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
