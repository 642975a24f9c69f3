"""Types of sections, known by keywords in their headings."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from pyramidions.base.arguments import fits
from pyramidions.base.errors import UserError
from pyramidions.base.strict_json import parse_json
from pyramidions.text.normalization import normalize
from pyramidions.text.outline import Outline

_WORD = re.compile(r"[^\W\d_]+")


class Section(NamedTuple):
    """A section that has a type."""

    heading: str  # as the document has it
    kind: str  # its type
    sentences: list[str]  # without the headings of subsections; at least one

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


class SectionTypes(NamedTuple):
    """The table of section types (Gidiotis and Tsoumakas 2020, "A Divide-and-Conquer Approach", section 3.2)."""

    keywords: dict[str, tuple[str, ...]]  # of each type, single words or several; in lower case
    train: tuple[str, ...]  # types whose sections become training pairs
    write: tuple[str, ...]  # types whose sections are summarized

    def of(self, heading: str) -> str | None:
        """Return the type of a section: that of its heading's first keyword, the longest if several begin there."""
        words = _WORD.findall(normalize(heading).lower())
        table = _by_words(tuple(self.keywords.items()))
        longest = max(map(len, table), default=0)
        for start in range(len(words)):
            for end in range(min(start + longest, len(words)), start, -1):
                if (found := table.get(tuple(words[start:end]))) is not None:
                    return found
        return None

    def sections(self, outline: Outline, wanted: tuple[str, ...]) -> Iterator[Section]:
        """Yield the sections of a document that hold text and have one of the wanted types."""
        for heading, sentences in zip(outline.headings, outline.sections, strict=True):
            kind = self.of(heading)
            if kind in wanted and sentences:
                yield Section(heading, kind, sentences)

    def as_json(self) -> dict[str, Any]:
        keywords = {kind: list(words) for kind, words in self.keywords.items()}
        return {"types": keywords, "train": list(self.train), "write": list(self.write)}


@cache
def _by_words(keywords: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[tuple[str, ...], str]:
    return {tuple(_WORD.findall(keyword)): kind for kind, of_kind in keywords for keyword in of_kind}


def section_types(path: Path | None = None) -> SectionTypes:
    """Read a table of section types."""
    if path is None:
        content = files("pyramidions.data").joinpath("section_types.json").read_bytes()
    else:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise UserError(f"The section types {path} cannot be read: {error.strerror}.") from None
    try:
        found = parse_json(content)
    except ValueError:
        found = None
    return _table(found, str(path))


def _table(found: Any, name: str) -> SectionTypes:
    keys = {"types", "train", "write"}
    if not isinstance(found, dict) or set(found) != keys or not isinstance(found["types"], dict):
        raise UserError(
            f'{name} must be a JSON object of "types" (an object), "train" and "write" (lists), and no more.'
        )
    kinds: Mapping[str, Any] = found["types"]
    for kind, words in kinds.items():
        if not fits(words, list[str]) or not words:
            raise UserError(f"{name}: the section type {kind!r} must have a list of keywords.")
    _check_keywords([(keyword, kind) for kind, words in kinds.items() for keyword in words], name)
    for use in ("train", "write"):
        if not fits(found[use], list[str]) or not found[use]:
            raise UserError(f"{name}: {use!r} must be a list of section types.")
        if unknown := [kind for kind in found[use] if kind not in kinds]:
            raise UserError(f"{name}: {use!r} must name types of the table, but {unknown[0]!r} is none.")
    keywords = {kind: tuple(normalize(word).lower() for word in words) for kind, words in kinds.items()}
    return SectionTypes(keywords, tuple(found["train"]), tuple(found["write"]))


def _check_keywords(kinds: list[tuple[str, str]], name: str) -> None:
    owner: dict[tuple[str, ...], str] = {}
    for keyword, kind in kinds:
        split = tuple(_WORD.findall(normalize(keyword).lower()))
        if not split:
            raise UserError(f"{name}: a keyword must hold a word, but {keyword!r} of {kind!r} holds none.")
        if owner.setdefault(split, kind) != kind:
            raise UserError(f"{name}: a keyword must have one type, but {keyword!r} has {owner[split]!r} and {kind!r}.")
