"""Summaries, references and documents in files of several formats, `fairseq-generate`'s output among them.

Texts come in the order of the documents. Documents, and summaries beside ids, stay on disk: a text is read when it is
asked for.
"""

import json
import re
import shlex
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.documents.record_fields import PLAIN, joined
from pyramidions.files.lines import IndexedLines
from pyramidions.files.progress import counted
from pyramidions.scoring.examples import Read, Texts
from pyramidions.text.tokenizer import MARKERS, NAME_END, SPACE

_HYPOTHESIS = re.compile(r"([SHD])-(\d+)\t(.*)", re.DOTALL)
_END = "Generate "
_UNPACK = {".gz": "gzip", ".xz": "xz"}
# What the texts of a key are called in errors.
_NAMES = {"summary": ("summary", "summaries"), "article": ("document", "documents")}


class _Items(IndexedLines):
    """The items of a list in JSON, each as a line of JSON."""

    unit = "item"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self.file.seek(0)
            found = parse_json(self.file.read())
            if not isinstance(found, list):
                raise ValueError("it is none")
        except ValueError as error:
            raise UserError(f"{path} must be a list in JSON, but {error}.") from None
        self._items = list(map(json.dumps, found))

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> str:
        return self._items[index]


def _lines(path: Path) -> IndexedLines:
    if (unpack := _UNPACK.get(path.suffix.lower())) and path.exists():
        raise UserError(f"{path} must not be compressed: `{unpack} -dk {shlex.quote(str(path))}` unpacks it.")
    lines = _Items(path) if path.suffix.lower() == ".json" else IndexedLines(path)
    if len(lines) and not _holds_records(lines) and _is_object(_unmarked(lines[0])):
        raise UserError(f"{path} must hold a text in each line, but holds JSON: name it {path.stem}.jsonl.")
    return lines


def _unmarked(line: str) -> str:
    """Return a line without a byte-order mark, which may stand in front of the first."""
    return line.removeprefix("\ufeff")


def _is_object(line: str) -> bool:
    try:
        return line.startswith("{") and isinstance(parse_json(line), dict)
    except ValueError:
        return False


def _holds_records(lines: IndexedLines) -> bool:
    return lines.path.suffix.lower() in (".json", ".jsonl")


class References(NamedTuple):
    """The references of each document, and whether their ids are their own; else these are positions."""

    texts: list[tuple[str, ...]]
    ids: list[str]
    has_ids: bool

    @classmethod
    def read(cls, path: str | Path) -> "References":
        """Read a `.jsonl` file of `{"id", "summary"}`, or a text file with one a line.

        A `.json` file, here and below, holds a list of what a `.jsonl` file holds. As in what `prepare` reads,
        `abstract` may stand for `summary`. A `summary` may be a list of several texts, of which those count that are
        not blank; a list as `abstract` is one text, as there. Positions are counted from 0 as fairseq does.
        """
        lines = _lines(Path(path))
        if not _holds_records(lines):
            return cls([(line,) for line in lines], list(map(str, range(len(lines)))), False)
        records = [_record(lines, at, "summary", several=True) for at in range(len(lines))]
        texts = [tuple(text for text in each if text.strip()) or each[:1] for _, each in records]
        return cls(texts, [name for name, _ in records], True)


def read_summaries(path: str | Path, references: References) -> Texts:
    """Return one summary a reference, in the references' order.

    The file is output of `fairseq-generate`; or a `.jsonl` file of `{"id", "summary"}`, such as `pyramidions summarize
    --json` writes, in any order; or a text file with one summary a line, in the references' order. Where the references
    come from a text file, which has no ids, and the summaries have other ids than its positions, those of a `.jsonl`
    file must be in the references' order, too.
    """
    lines = _lines(Path(path))
    if _holds_records(lines):
        return _json_texts(lines, "summary", references)
    if is_generate_output(lines):
        return generated_summaries(lines, len(references.ids), str(path))
    if len(lines) and len(lines) == 3 * len(references.ids) and not any(islice(lines, 2, None, 3)):
        raise UserError(f"{path} must hold one summary a line, but holds names, too: write it with --json.")
    return _one_each(lines, *_NAMES["summary"], references)


def read_documents(path: str | Path, references: References) -> Texts:
    """Return one document a reference, from a `.jsonl` file of `{"id", "article"}`, or a text file with one a line.

    An ``article`` may be a list of sentences.
    """
    lines = _lines(Path(path))
    if _holds_records(lines):
        return _json_texts(lines, "article", references)
    return _one_each(lines, *_NAMES["article"], references)


def _json_texts(lines: IndexedLines, key: str, references: References) -> Texts:
    """Return the texts of a `.jsonl` file in the references' order."""
    ids = [_record(lines, at, key)[0] for at in range(len(lines))]
    numbers: Sequence[int] = range(len(lines))
    if not references.has_ids and set(ids) != set(references.ids):
        _one_each(lines, *_NAMES[key], references)
    else:
        numbers = _order(ids, references.ids, lines.path)
    return Read(len(numbers), lambda at: _record(lines, numbers[at], key)[1][0])


def _order(ids: Sequence[str], expected: Sequence[str], path: Path) -> Sequence[int]:
    """Return which line has each id that is expected."""
    found: dict[str, int] = {}
    for number, name in enumerate(ids):
        if name in found:
            raise UserError(f"{path}: document {name!r} comes twice.")
        found[name] = number
    names = set(expected)
    if len(names) < len(expected):
        ((twice, _),) = Counter(expected).most_common(1)
        raise UserError(f"Each reference must have an id of its own, but {twice!r} comes twice.")
    if unknown := next((name for name in ids if name not in names), None):
        raise UserError(f"{path}: has document {unknown!r}, which no reference has.")
    if missing := [name for name in expected if name not in found]:
        raise UserError(f"{path}: lacks {len(missing)} of {len(names)} documents ({missing[0]!r} first).")
    return array("Q", (found[name] for name in expected))


def _one_each(lines: IndexedLines, one: str, several: str, references: References) -> IndexedLines:
    if len(lines) != len(references.ids):
        found = f"{len(lines):,} {one if len(lines) == 1 else several}"
        expected = counted(len(references.ids), "reference")
        raise UserError(f"{lines.path} has {found}, but needs one for each of {expected}.")
    return lines


def _record(lines: IndexedLines, at: int, key: str, *, several: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return the id and the texts of a line of JSON."""
    also = f", the {key} a text or a list of texts" if several else ""
    rule = f'{lines.place(at)}: each {lines.unit} must be {{"id": ..., "{key}": ...}}{also}'
    try:
        record = parse_json(_unmarked(lines[at]))
    except ValueError as error:
        raise UserError(f"{rule}, but {error}.") from None
    try:
        name = str(record["id"])
        # Nothing is no reference.
        given = record[key] if key in record or not several else joined(record[PLAIN.target] or None)
    except (KeyError, TypeError):
        raise UserError(f"{rule}.") from None
    if key == PLAIN.source:
        given = joined(given)
    texts = tuple(given) if several and isinstance(given, list) else (given,)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise UserError(f"{rule}.")
    return name, texts


def generated_summaries(lines: IndexedLines | Sequence[str], count: int, place: str = "The output") -> list[str]:
    """Return the best summary of each document in the output of `fairseq-generate`, in the order of the documents.

    fairseq prints documents in the order of its batches: `S-` and `T-`, then for every hypothesis, the best first, `H-`
    (pieces or text) and `D-` (text). We take `D-`, or `H-` if the output has no `D-`. Pieces are joined to text.
    fairseq silently drops the documents of a ragged last batch, and a run that is killed may cut its last summary: both
    are refused.
    """
    best = _hypotheses(lines, place)
    found = best["D"] or best["H"]
    if beyond := sorted(index for index in found if index >= count):
        raise UserError(f"{place}: has document {beyond[-1]}, but there are {count} references.")
    if missing := [str(index) for index in range(count) if index not in found]:
        shown = ", ".join(missing[:5]) + (", …" if len(missing) > 5 else "")
        raise UserError(f"{place}: lacks {len(missing)} of {count} documents ({shown}).")
    # Only `fairseq-generate` prints targets; the output of other programs, or of `grep`, has no such end.
    if any(line.startswith("T-") for line in lines) and ends_early(lines):
        raise UserError(f"{place}: ends early: it lacks the last line, 'Generate ... with beam=...'.")
    return [_join_pieces(found[index].rstrip("\r\n")) for index in range(count)]


def _hypotheses(lines: Iterable[str], place: str) -> dict[str, dict[int, str]]:
    """Return the best hypothesis of each document, by the kind of its line."""
    best: dict[str, dict[int, str]] = {"H": {}, "D": {}}
    current: dict[str, int | None] = {"H": None, "D": None}
    for line in lines:
        match = _HYPOTHESIS.match(line)
        if match is None:
            continue
        kind, index, (_, has_score, text) = match[1], int(match[2]), match[3].partition("\t")
        if kind == "S":
            current = {"H": None, "D": None}
            continue
        if not has_score:
            raise UserError(f"{place}: the line {kind}-{index} must hold a score and a text.")
        # Further hypotheses of the same document follow directly; anything else is a second run of it.
        if index in best[kind] and current[kind] != index:
            raise UserError(f"{place}: document {index} comes twice.")
        current[kind] = index
        best[kind].setdefault(index, text)
    return best


def is_generate_output(lines: Iterable[str]) -> bool:
    """Whether any line is a hypothesis as `fairseq-generate` prints it."""
    return any(match[1] in "HD" for line in lines if (match := _HYPOTHESIS.match(line)))


def ends_early(lines: Iterable[str]) -> bool:
    """Whether an output lacks the line that `fairseq-generate` prints at its end, as after a kill or on a full disk."""
    return not any(line.startswith(_END) for line in lines)


def _join_pieces(text: str) -> str:
    if SPACE not in text:
        return text
    pieces = (piece for piece in text.split() if piece not in (NAME_END, *MARKERS))
    return "".join(pieces).replace(SPACE, " ").strip()
