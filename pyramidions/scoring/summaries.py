"""Reads summaries and references from files of several formats, in the order of the documents."""

from collections.abc import Sequence
from pathlib import Path

from pyramidions.data.folder import Reference, parse_references
from pyramidions.errors import UserError
from pyramidions.files.lines import read_lines
from pyramidions.files.progress import counted
from pyramidions.scoring.generate_output import is_generate_output, parse_generate_output


class TextReference(Reference):
    """A line of a text file; its id is its position."""


def read_references(path: str | Path) -> list[Reference]:
    """References from a `.jsonl` file of `{"id", "summary"}`, or from a text file with one a line.

    The id of a line is its position, counted from 0 as fairseq does.
    """
    path = Path(path)
    if path.suffix == ".jsonl":
        return parse_references(path)
    return [TextReference(str(index), line) for index, line in enumerate(read_lines(path))]


def read_summaries(path: str | Path, references: Sequence[Reference]) -> list[str]:
    """One summary a reference, in the references' order.

    Args:
        path: output of `fairseq-generate`; or a `.jsonl` file of `{"id", "summary"}`, such as `pyramidions summarize
            --json` writes, in any order; or a text file with one summary a line, in the references' order. Where the
            references come from a text file, which has no ids, and the summaries have other ids than its positions,
            those of a `.jsonl` file must be in the references' order, too.
        references: the documents that must be there.

    Raises:
        UserError: a summary is missing, comes twice or belongs to no reference.
    """
    path = Path(path)
    if path.suffix == ".jsonl":
        summaries = parse_references(path)
        if {each.id for each in summaries} == {each.id for each in references} or not _are_text(references):
            return _in_order_of(references, summaries, path)
        return _one_each([each.summary for each in summaries], references, path)
    lines = read_lines(path)
    if is_generate_output(lines):
        return parse_generate_output(lines, len(references), str(path))
    if lines and len(lines) == 3 * len(references) and not any(lines[2::3]):
        raise UserError(f"{path} must hold one summary a line, but holds names, too: write it with --json.")
    return _one_each(lines, references, path)


def _are_text(references: Sequence[Reference]) -> bool:
    return all(isinstance(reference, TextReference) for reference in references)


def _one_each(summaries: list[str], references: Sequence[Reference], path: Path) -> list[str]:
    if len(summaries) != len(references):
        found = f"{len(summaries):,} {'summary' if len(summaries) == 1 else 'summaries'}"
        expected = counted(len(references), "reference")
        raise UserError(f"{path} has {found}, but needs one for each of {expected}.")
    return summaries


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
