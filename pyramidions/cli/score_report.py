"""What `pyramidions score` prints and writes."""

import json
import shutil
import textwrap
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import IO, Any

from pyramidions.files.parallel import chunks
from pyramidions.files.progress import counted
from pyramidions.scoring.examples import Examples
from pyramidions.scoring.scores import SMALLEST_P, Scores
from pyramidions.text.normalization import normalize

_COLUMNS = 5  # figures in a table
_FEW = 20  # documents; below, intervals and p-values are unreliable


def table(scores: Mapping[str, Scores]) -> str:
    """Return the figures of systems with their intervals, and how the first one differs from the others."""
    width = max(len(name) for name in [*scores, "system"])
    first, *others = scores
    figures = scores[first].figures
    lines = []
    for names in chunks(figures, _COLUMNS):
        rows = [["system", *(figures[name].label for name in names)]]
        for system, of_system in scores.items():
            estimates = ((of_system.estimates[name], figures[name].digits) for name in names)
            rows.append([system, *(f"{e.mean:.{n}f} [{e.low:.{n}f}, {e.high:.{n}f}]" for e, n in estimates)])
        widths = [max(20, *map(len, column)) for column in list(zip(*rows, strict=True))[1:]]
        for first_cell, *cells in rows:
            aligned = (f"{cell:>{wide}}" for cell, wide in zip(cells, widths, strict=True))
            lines.append("  ".join([f"{first_cell:{width}}", *aligned]))
        lines.append("")
    of_labels = max(10, *(len(figure.label) for figure in figures.values()))
    for other in others:
        lines.append(f"{first} minus {other}, paired bootstrap:")
        for name, d in scores[first].compare(scores[other]).items():
            sign = "<=" if d.p_value <= SMALLEST_P else "="
            n = figures[name].digits
            interval = f"{d.difference:+6.{n}f} [{d.low:+.{n}f}, {d.high:+.{n}f}]"
            lines.append(f"  {figures[name].label:{of_labels}}  {interval}  p {sign} {d.p_value:.3f}")
        lines.append("")
    documents = len(scores[first].scores)
    if documents < _FEW:
        lines.append(f"Only {counted(documents, 'document')}: too few for reliable intervals and p-values.\n")
    for system, of_system in scores.items():
        lines += [f"{system}: {remark}" for remark in of_system.remarks]
    lines.append(scores[first].signature)
    return "\n".join(lines)


def write_json(file: IO[bytes], scores: Mapping[str, Scores], ids: Sequence[str]) -> None:
    """Write all numbers as JSON; a line for each document, so that memory does not grow with their number."""
    first, *others = scores
    head: dict[str, Any] = {
        "signature": scores[first].signature,
        "remarks": {name: of_system.remarks for name, of_system in scores.items()},
        "systems": {
            name: {figure: estimate._asdict() for figure, estimate in of_system.estimates.items()}
            for name, of_system in scores.items()
        },
        "comparisons": {
            other: {name: d._asdict() for name, d in scores[first].compare(scores[other]).items()} for other in others
        },
    }
    file.write(json.dumps(head, indent=1).removesuffix("\n}").encode() + b',\n "documents": [')
    for index, name in enumerate(ids):
        of_document = {
            system: dict(zip(of_system.figures, of_system.scores[index].tolist(), strict=True))
            for system, of_system in scores.items()
        }
        file.write((",\n" if index else "\n").encode() + json.dumps({"id": name, **of_document}).encode())
    file.write(b"\n ]\n}\n")


def side_by_side(examples: Examples, index: int, name: str) -> str:
    """Return a summary beside its references."""
    example = examples[index]
    width = max(20, (min(shutil.get_terminal_size().columns, 160) - 3) // 2)
    left = ["SUMMARY", *textwrap.wrap(normalize(example.prediction) or "(empty)", width)]
    right = []
    for reference in example.references:
        right += ["REFERENCE", *textwrap.wrap(normalize(reference), width)]
    rows = (f"{a:{width}} | {b}".rstrip() for a, b in zip_longest(left, right, fillvalue=""))
    return "\n".join([f"document {name}", *rows])
