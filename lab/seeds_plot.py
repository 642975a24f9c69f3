"""Draws how well rows that were trained for several seeds predict summaries, and what reading gains them."""

from collections.abc import Sequence

from lab.paper_tables import lengths
from lab.scale import SCALES
from lab.seeds import SeededRow
from pyramidions.curves.picture import STYLES, image, literal, new_figure


def draw_losses(rows: Sequence[SeededRow]) -> bytes | None:
    """Draw the loss of each row with its own document and with another, the best row at the top.

    Args:
        rows: those without a loss are left out.

    Returns:
        A PNG image; None if no row has a loss.
    """
    known = sorted((row for row in rows if row.losses), key=lambda row: row.estimates["own"].mean, reverse=True)
    if not known:
        return None
    figure = new_figure(7.0, 1.4 + 0.4 * len(known))
    axes = figure.subplots()
    places = range(len(known))
    own, another = ([row.estimates[name] for row in known] for name in ("own", "another"))
    axes.hlines(places, [e.mean for e in own], [e.mean for e in another], color="#CCCCCC", linewidth=3, zorder=1)
    for estimates, (colour, marker), label in (
        (own, STYLES[0], "its own document, with 95% interval"),
        (another, STYLES[1], "another document"),
    ):
        # Rounding may leave a value outside of its interval by the last digit.
        around = [(max(0.0, e.mean - e.low), max(0.0, e.high - e.mean)) for e in estimates]
        axes.errorbar(
            *([e.mean for e in estimates], places),
            xerr=list(zip(*around, strict=True)),
            color=colour,
            marker=marker,
            linestyle="none",
            capsize=3,
            label=label,
        )
    axes.set_yticks(places, [literal(_label(row)) for row in known])
    axes.set_xlabel("loss of summaries (nats a token)")
    axes.grid(axis="x", color="#DDDDDD")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    return image(figure)


def _label(seeded: SeededRow) -> str:
    return f"{seeded.name}: {seeded.row.architecture}, {lengths(seeded.row, SCALES[seeded.scale].lengths)}"
