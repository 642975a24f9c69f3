"""Summaries, references and documents in files of several formats, in the order of the documents.

Files stay on disk: a text is read when it is asked for. What is held are the ids and where each text begins; of a
`.json` file, all of it.
"""

import json
from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.documents.record_fields import PLAIN
from pyramidions.files.indexed_lines import IndexedLines
from pyramidions.files.progress import counted
from pyramidions.scoring.examples import Texts
from pyramidions.scoring.generate_output import GeneratedSummaries, is_generate_output

# What the texts of a key are called in errors.
_NAMES = {"summary": ("summary", "summaries"), "article": ("document", "documents")}


class _Items(IndexedLines):
    """The items of a list in JSON, each as a line of JSON."""

    unit = "item"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            self._file.seek(0)
            found = parse_json(self._file.read())
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
    return _Items(path) if path.suffix.lower() == ".json" else IndexedLines(path)


def _holds_records(lines: IndexedLines) -> bool:
    return lines.path.suffix.lower() in (".json", ".jsonl")


class ReferenceFile:
    """The references of each document, from a `.jsonl` file of `{"id", "summary"}`, or a text file with one a line.

    A `.json` file, here and below, holds a list of what a `.jsonl` file holds.

    As in what `prepare` reads, `abstract` may stand for `summary`, which may be a list of several texts.
    The id of a line of text is its position, counted from 0 as fairseq does.

    Args:
        path: the file.

    Raises:
        UserError: there is no such file, or a line is not as described.
    """

    def __init__(self, path: str | Path) -> None:
        self._lines = _lines(Path(path))
        self.has_ids = _holds_records(self._lines)
        if self.has_ids:
            self.ids = [_record(self._lines, at, "summary", several=True)[0] for at in range(len(self._lines))]
        else:
            self.ids = list(map(str, range(len(self._lines))))

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, index: int) -> tuple[str, ...]:
        """Return the references of a document, at least one; of several those that are not blank."""
        if not self.has_ids:
            return (self._lines[index],)
        texts = _record(self._lines, index, "summary", several=True)[1]
        return tuple(text for text in texts if text.strip()) or texts[:1]


def read_summaries(path: str | Path, references: ReferenceFile) -> Texts:
    """Return one summary a reference, in the references' order.

    Args:
        path: output of `fairseq-generate`; or a `.jsonl` file of `{"id", "summary"}`, such as `pyramidions summarize
            --json` writes, in any order; or a text file with one summary a line, in the references' order. Where the
            references come from a text file, which has no ids, and the summaries have other ids than its positions,
            those of a `.jsonl` file must be in the references' order, too.
        references: of the documents that must be there.

    Raises:
        UserError: a summary is missing, comes twice or belongs to no reference; or two references have one id.
    """
    lines = _lines(Path(path))
    if _holds_records(lines):
        return _JsonTexts(lines, "summary", references)
    if is_generate_output(lines):
        return GeneratedSummaries(lines, len(references), str(path))
    if len(lines) and len(lines) == 3 * len(references) and not any(islice(lines, 2, None, 3)):
        raise UserError(f"{path} must hold one summary a line, but holds names, too: write it with --json.")
    return _one_each(lines, *_NAMES["summary"], references)


def read_documents(path: str | Path, references: ReferenceFile) -> Texts:
    """Return one document a reference, from a `.jsonl` file of `{"id", "article"}`, or a text file with one a line.

    Raises:
        UserError: a document is missing, comes twice or belongs to no reference.
    """
    lines = _lines(Path(path))
    if _holds_records(lines):
        return _JsonTexts(lines, "article", references)
    return _one_each(lines, *_NAMES["article"], references)


class _JsonTexts:
    """The texts of a `.jsonl` file in the references' order."""

    def __init__(self, lines: IndexedLines, key: str, references: ReferenceFile) -> None:
        self._lines = lines
        self._key = key
        ids = [_record(lines, at, key)[0] for at in range(len(lines))]
        if not references.has_ids and set(ids) != set(references.ids):
            _one_each(lines, *_NAMES[key], references)
            self._numbers: Sequence[int] = range(len(lines))
        else:
            self._numbers = _order(ids, references.ids, lines.path)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> str:
        return _record(self._lines, self._numbers[index], self._key)[1][0]


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


def _one_each(lines: IndexedLines, one: str, several: str, references: ReferenceFile) -> IndexedLines:
    if len(lines) != len(references):
        found = f"{len(lines):,} {one if len(lines) == 1 else several}"
        expected = counted(len(references), "reference")
        raise UserError(f"{lines.path} has {found}, but needs one for each of {expected}.")
    return lines


def _record(lines: IndexedLines, at: int, key: str, *, several: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return the id and the texts of a line of JSON."""
    try:
        record = parse_json(lines[at])
        name = str(record["id"])
        given = record[PLAIN.target if several and key not in record else key]
    except (ValueError, KeyError, TypeError):
        given = None
    texts = tuple(given) if several and isinstance(given, list) else (given,)
    if not texts or not all(isinstance(text, str) for text in texts):
        also = f", the {key} a text or a list of texts" if several else ""
        raise UserError(f'{lines.place(at)}: each {lines.unit} must be {{"id": ..., "{key}": ...}}{also}.')
    return name, texts
