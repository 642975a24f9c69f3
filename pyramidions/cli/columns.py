"""Tables of plain text."""

from collections.abc import Collection, Iterable, Sequence


def columns(rows: Iterable[Sequence[str]], left: Collection[int] = (0,)) -> list[str]:
    """Return rows of cells as lines with aligned columns: those named by ``left`` to the left, others to the right."""
    cells = list(rows)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    form = "  ".join(f"{{:{'<' if n in left else '>'}{width}}}" for n, width in enumerate(widths))
    return [form.format(*row).rstrip() for row in cells]
