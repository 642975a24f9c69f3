"""Papers of a folder as records: the abstract is the summary of the text."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyramidions.data.ids import id_hash
from pyramidions.documents.file_formats import LIMITS, PAPERS, file_ending, may_be_paper, paper_of
from pyramidions.documents.paper_xml import Paper
from pyramidions.documents.record_fields import PLAIN, SECTION_FIELDS
from pyramidions.documents.records import Record, Records, known_ending
from pyramidions.files.bounded import printable, require_at_most
from pyramidions.text.detection import detect_in_lines
from pyramidions.text.language import Language

#: Of 20 papers, chosen by a hash of their names, one is for validation, and one for testing.
_SPLITS = {0: "valid", 1: "test"}
_PARTS = 20


def paper_files(folder: Path) -> list[Path]:
    """Return the files of a folder that may be papers, in order; hidden ones are left out."""
    found = (path for path in folder.rglob("*") if known_ending(path, PAPERS) and path.is_file() and may_be_paper(path))
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def open_papers(folder: Path, split: str) -> Records:
    hashes = {path: id_hash(_name(folder, path)) for path in paper_files(folder)}
    chosen = [path for path, place in hashes.items() if _SPLITS.get(place % _PARTS, "train") == split]
    return Records(sum(path.stat().st_size for path in chosen), "B", partial(_records, folder, chosen))


def _name(folder: Path, path: Path) -> str:
    name = path.relative_to(folder)
    return printable(name.with_name(name.name[: -len(known_ending(path, PAPERS))]))


def _records(folder: Path, paths: Sequence[Path]) -> Iterator[Record]:
    read = 0
    for number, path in enumerate(paths, 1):
        size = path.stat().st_size
        require_at_most(LIMITS[file_ending(path)], size, printable(path))
        read += size
        yield Record(_record(_name(folder, path), paper_of(path)), number, printable(path), read)


def _record(name: str, paper: Paper) -> dict[str, Any]:
    """Return a paper as the release of arXiv and PubMed has it, in sections of sentences."""
    names: list[str] = [""]
    sections: list[list[str]] = [[]]
    split = Language(detect_in_lines(line for level, line in paper.body if not level)).sentences
    for level, line in paper.body:
        if level:
            names.append(line)
            sections.append([])
        else:
            sections[-1] += split(line)
    kept = [place for place, section in enumerate(sections) if section or names[place]]
    text = [sentence for section in sections for sentence in section]
    fields = (PLAIN.id, PLAIN.source, PLAIN.target, *SECTION_FIELDS)
    values = (name, text, paper.abstract, [sections[place] for place in kept], [names[place] for place in kept])
    return dict(zip(map(str, fields), values, strict=True))
