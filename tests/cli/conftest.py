"""Runs the command line in this process, on a tiny corpus."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import small_exports
from click.testing import CliRunner, Result

from pyramidions.cli import main

WORDS = [a + b for a in "ba de ki lo mu ra se ti".split() for b in "ban den kin lon mur ras sel tin".split()]


def make_text(draw: random.Random, sentences: int) -> str:
    return " ".join(" ".join(draw.choices(WORDS, k=draw.randint(4, 9))) + "." for _ in range(sentences))


@pytest.fixture
def run() -> Callable[..., Result]:
    def invoke(*arguments: object, text: str | None = None) -> Result:
        words = [str(argument) for argument in arguments]
        return CliRunner().invoke(main, words, prog_name="pyramidions", input=text)

    return invoke


@pytest.fixture
def fail(run: Callable[..., Result]) -> Callable[..., str]:
    """Runs a command that must fail, and returns its one sentence."""

    def invoke(*arguments: object) -> str:
        result = run(*arguments)
        assert result.exit_code == 1, result.output
        last = result.stderr.rstrip("\n").splitlines()[-1]
        assert last.startswith("Error: ")
        assert "Traceback" not in result.output
        return last.removeprefix("Error: ")

    return invoke


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
    result = CliRunner().invoke(main, ["prepare", str(papers), "--out", str(out), "--vocab-size", "60"])
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture(scope="session")
def whole_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Untrained summarizers, one of which answers queries."""
    folder = tmp_path_factory.mktemp("models")
    return {name: small_exports.summarizer(folder / name, queries=name == "queries") for name in ("plain", "queries")}
