"""A small corpus of made-up papers."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from folders import contents
from hypothesis import settings

from pyramidions.data import encode
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


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AbstractContextManager[None]]:
    """A context that presses Ctrl-C at a document that is encoded, counted from 0 over all splits."""

    @contextmanager
    def at_document(at: int, error: type[BaseException] = KeyboardInterrupt) -> Iterator[None]:
        add, numbers = encode._SplitFiles.add, count()

        def add_or_stop(*args: Any) -> None:
            if next(numbers) == at:
                raise error
            add(*args)

        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(encode._SplitFiles, "add", add_or_stop)
            yield

    return at_document
