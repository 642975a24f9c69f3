"""Reads summaries and references from files, whatever shape they have, in the documents' order."""

from collections.abc import Sequence
from pathlib import Path

from pyramidions.data.folder import Reference, parse_references
from pyramidions.data.lines import read_lines
from pyramidions.data.progress import counted
from pyramidions.errors import UserError
from pyramidions.scoring.generate_output import is_generate_output, parse_generate_output


def read_references(path: str | Path) -> list[Reference]:
    """References from a `.jsonl` file of `{"id", "summary"}`, or from a text file with one a line.

    Those of a text file are named after their position, counted from 0, as fairseq counts.
    """
    path = Path(path)
    if path.suffix == ".jsonl":
        return parse_references(path)
    return [Reference(str(index), line) for index, line in enumerate(read_lines(path))]


def read_summaries(path: str | Path, references: Sequence[Reference]) -> list[str]:
    """One summary a reference, in the references' order.

    Args:
        path: output of `fairseq-generate`; or a `.jsonl` file of `{"id", "summary"}` in any order; or a text
            file with one summary a line, in the references' order.
        references: the documents that must be there.

    Raises:
        UserError: a summary is missing, comes twice or belongs to no reference.
    """
    path = Path(path)
    if path.suffix == ".jsonl":
        return _in_order_of(references, parse_references(path), path)
    lines = read_lines(path)
    if is_generate_output(lines):
        return parse_generate_output(lines, len(references), str(path))
    if len(lines) != len(references):
        found = f"{len(lines):,} {'summary' if len(lines) == 1 else 'summaries'}"
        expected = counted(len(references), "reference")
        raise UserError(f"{path} has {found}, but needs one for each of {expected}.")
    return lines


def _in_order_of(references: Sequence[Reference], summaries: list[Reference], path: Path) -> list[str]:
    found: dict[str, str] = {}
    for summary in summaries:
        if summary.id in found:
            raise UserError(f"{path}: document {summary.id!r} comes twice.")
        found[summary.id] = summary.summary
    names = {reference.id for reference in references}
    if unknown := [name for name in found if name not in names]:
        raise UserError(f"{path}: has document {unknown[0]!r}, which no reference has.")
    if missing := [reference.id for reference in references if reference.id not in found]:
        raise UserError(f"{path}: lacks {len(missing)} of {len(names)} documents ({missing[0]!r} first).")
    return [found[reference.id] for reference in references]
