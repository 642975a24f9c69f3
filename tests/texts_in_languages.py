"""A short paper in each of several languages: two headed sections of two sentences, and a summary."""

import json
from pathlib import Path
from typing import NamedTuple


class Written(NamedTuple):
    """A paper; the summary shares most words with the last sentence."""

    text: str
    sentences: list[str]
    headings: tuple[str, str]
    summary: str


def _paper(between: str, headings: list[str], sentences: list[str], summary: str) -> Written:
    (one, two), (first, second) = headings, (between.join(sentences[:2]), between.join(sentences[2:]))
    return Written(f"{one}\n\n{first}\n\n{two}\n\n{second}\n", sentences, (one, two), summary)


_READ = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
PAPERS = {language: _paper(**about) for language, about in _READ.items()}
