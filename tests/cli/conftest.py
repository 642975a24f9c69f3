"""A tiny corpus, and what commands make of it."""

import json
import random
from pathlib import Path

import pytest
import small_exports
from invoking import succeed

WORDS = [a + b for a in "ba de ki lo mu ra se ti".split() for b in "ban den kin lon mur ras sel tin".split()]


def make_text(draw: random.Random, sentences: int) -> str:
    return " ".join(" ".join(draw.choices(WORDS, k=draw.randint(4, 9))) + "." for _ in range(sentences))


@pytest.fixture(scope="session")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train and test files."""
    draw = random.Random(7)
    folder = tmp_path_factory.mktemp("papers")
    for split, count in (("train", 30), ("test", 5)):
        records = [
            {"id": f"{split}-{i}", "article": make_text(draw, 20), "abstract": make_text(draw, 3)} for i in range(count)
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder


@pytest.fixture(scope="session")
def prepared(papers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder made by the command."""
    out = tmp_path_factory.mktemp("prepared") / "data"
    succeed("prepare", papers, "--out", out, "--vocab-size", 60)
    return out


@pytest.fixture(scope="session")
def whole_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Untrained summarizers, one of which answers queries."""
    folder = tmp_path_factory.mktemp("models")
    return {name: small_exports.summarizer(folder / name, queries=name == "queries") for name in ("plain", "queries")}
