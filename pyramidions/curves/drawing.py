"""What all our pictures share: colours, markers, and a figure that is written without a screen."""

import io
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours that the colour-blind can tell apart (Okabe and Ito, 2008), each with a marker of its own.
STYLES = (
    *(("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D")),
    *(("#E69F00", "v"), ("#56B4E9", "P"), ("#000000", "X")),
)


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
