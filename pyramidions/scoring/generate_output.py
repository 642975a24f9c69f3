"""Reads the output of `fairseq-generate`."""

import re
from array import array
from collections.abc import Iterable, Iterator
from typing import Protocol

from pyramidions.base.errors import UserError
from pyramidions.text.tokenizer import MARKERS_BETWEEN, NAME_END, SENTENCE_MARKER, SPACE, TURN_MARKER

_LINE = re.compile(r"([SHD])-(\d+)\t(.*)", re.DOTALL)
_END = "Generate "


class Lines(Protocol):
    """Lines by number."""

    def __iter__(self) -> Iterator[str]: ...

    def __getitem__(self, index: int, /) -> str: ...


def is_generate_output(lines: Iterable[str]) -> bool:
    """Whether any line is a hypothesis as `fairseq-generate` prints it."""
    return any(match[1] in "HD" for line in lines if (match := _LINE.match(line)))


def ends_early(lines: Iterable[str]) -> bool:
    """Whether an output lacks the line that `fairseq-generate` prints at its end, as after a kill or on a full disk."""
    return not any(line.startswith(_END) for line in lines)


class GeneratedSummaries:
    """The best summary of each document in the output of `fairseq-generate`, in the order of the documents.

    fairseq prints documents in the order of its batches: `S-` and `T-`, then for every hypothesis, the best first, `H-`
    (pieces or text) and `D-` (text). We take `D-`, or `H-` if the output has no `D-`. Pieces are joined to text.

    Args:
        lines: the output, with any other lines in between; they are read again when a summary is asked for.
        count: number of documents.
        place: the file's name, for the error.

    Raises:
        UserError: an index is missing, comes twice or is not below `count` (fairseq silently drops the documents of a
            ragged last batch); or the output ends early, so that its last summary may be cut.
    """

    def __init__(self, lines: Lines, count: int, place: str = "The output") -> None:
        self._lines = lines
        best: dict[str, dict[int, int]] = {"H": {}, "D": {}}
        current: dict[str, int | None] = {"H": None, "D": None}
        has_targets = is_over = False
        for number, line in enumerate(lines):
            has_targets |= line.startswith("T-")
            is_over |= line.startswith(_END)
            match = _LINE.match(line)
            if match is None:
                continue
            kind, index, rest = match[1], int(match[2]), match[3]
            if kind == "S":
                current = {"H": None, "D": None}
                continue
            if "\t" not in rest:
                raise UserError(f"{place}: the line {kind}-{index} must hold a score and a text.")
            # Further hypotheses of the same document follow directly; anything else is a second run of it.
            if index in best[kind] and current[kind] != index:
                raise UserError(f"{place}: document {index} comes twice.")
            current[kind] = index
            best[kind].setdefault(index, number)
        found = best["D"] or best["H"]
        _refuse_gaps(found, count, place)
        # Only `fairseq-generate` prints targets; the output of other programs, or of `grep`, has no such end.
        if has_targets and not is_over:
            raise UserError(f"{place}: ends early: it lacks the last line, 'Generate ... with beam=...'.")
        self._numbers = array("Q", (found[index] for index in range(count)))

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> str:
        """Return the summary of a document."""
        _, _, text = self._lines[self._numbers[index]].rstrip("\r\n").split("\t", 2)
        return _join_pieces(text)


def _refuse_gaps(found: dict[int, int], count: int, place: str) -> None:
    if beyond := sorted(index for index in found if index >= count):
        raise UserError(f"{place}: has document {beyond[-1]}, but there are {count} references.")
    if missing := [str(index) for index in range(count) if index not in found]:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        raise UserError(f"{place}: lacks {len(missing)} of {count} documents ({shown}).")


def _join_pieces(text: str) -> str:
    if SPACE not in text:
        return text
    markers = (SENTENCE_MARKER, TURN_MARKER, NAME_END, *MARKERS_BETWEEN)
    pieces = (piece for piece in text.split() if piece not in markers)
    return "".join(pieces).replace(SPACE, " ").strip()
