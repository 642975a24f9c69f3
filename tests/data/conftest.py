"""A small corpus of made-up papers."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from folders import contents
from hypothesis import settings

from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus
from pyramidions.data.vocabulary import Settings

# A loaded machine is no failure.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

WORDS = [a + b for a in "ba de ki lo mu ra se ti".split() for b in "ban den kin lon mur ras sel tin".split()]


def make_text(draw: random.Random, sentences: int) -> str:
    return " ".join(" ".join(draw.choices(WORDS, k=draw.randint(4, 9))) + "." for _ in range(sentences))


@pytest.fixture
def records() -> list[dict[str, str]]:
    draw = random.Random(7)
    return [{"id": f"paper-{i}", "article": make_text(draw, 20), "abstract": make_text(draw, 3)} for i in range(40)]


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., str]:
    """Writes records as JSON lines and returns the path."""

    def write(name: str, records: list[dict[str, object]]) -> str:
        path = tmp_path / name
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def train_file(write_lines: Callable[..., str], records: list[dict[str, str]]) -> str:
    return write_lines("train.jsonl", records[:30])


@pytest.fixture
def test_file(write_lines: Callable[..., str], records: list[dict[str, str]]) -> str:
    return write_lines("test.jsonl", records[30:])


@pytest.fixture
def corpora(train_file: str, test_file: str) -> dict[str, Corpus]:
    return {"train": Corpus(train_file), "test": Corpus(test_file, "test")}


@pytest.fixture
def whole(tmp_path: Path, corpora: dict[str, Corpus]) -> dict[str, bytes]:
    """The files of a folder that was prepared without an interruption, with 60 pieces."""
    folder = tmp_path / "whole" / "data"
    prepare(folder, corpora, Settings(vocab_size=60))
    return contents(folder)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a folder is to be prepared, alone in its parent."""
    return tmp_path / "out" / "data"
