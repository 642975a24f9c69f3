"""Every output of a command is an input of the next one, as it is."""

import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from conftest import SAMPLE

from pyramidions.data.folder import DataFolder

SHORT = ["--beam", 1, "--min-len", 1, "--max-len", 3]
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the papers that the test split of `data` was made of."""
    path = tmp_path_factory.mktemp("corpus") / "test.jsonl"
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        path.write_text("".join(line for _, line in zip(range(10), papers, strict=False)))
    return path


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_summaries_are_scored_exported_and_summarized_again(
    run: Run, checkpoint: Path, data: DataFolder, corpus: Path, tmp_path: Path
) -> None:
    summaries, scores, again = (tmp_path / name for name in ("summaries.jsonl", "scores.json", "again.jsonl"))
    # A file that ends in .jsonl gets JSON.
    done = run("summarize", checkpoint, corpus, "--field", "article", *SHORT, "-o", summaries)
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows(summaries)] == [reference.id for reference in data.references("test")]
    assert [row["name"] for row in rows(summaries)] == [f"{corpus}:{number}" for number in range(1, 11)]
    shuffled = tmp_path / "shuffled.jsonl"
    shuffled.write_text("\n".join(reversed(summaries.read_text().splitlines())) + "\n")
    for given in (["--data", data.path], ["--references", data.references_path("test")]):
        done = run("score", summaries, *given, "--baseline", shuffled, "--json", scores, "--workers", 1)
        assert done.exit_code == 0, done.output
        # Both are matched by id, so that the order makes no difference.
        systems = list(json.loads(scores.read_text())["systems"].values())
        assert systems[0] == systems[1]
    assert run("export", checkpoint, tmp_path / "model", "--scores", scores).exit_code == 0
    done = run("summarize", tmp_path / "model", summaries, "--field", "summary", *SHORT, "-o", again)
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows(again)] == [row["id"] for row in rows(summaries)]
    assert run("score", again, "--references", summaries, "--workers", 1).exit_code == 0


def test_references_of_a_data_folder_are_scored_and_summarized(
    run: Run, checkpoint: Path, data: DataFolder, tmp_path: Path
) -> None:
    references, out = data.references_path("test"), tmp_path / "out.jsonl"
    assert "100.00 [" in run("score", references, "--data", data.path, "--workers", 1).stdout
    done = run("summarize", checkpoint, references, "--field", "summary", *SHORT, "-o", out)
    assert done.exit_code == 0, done.output
    assert run("score", out, "--references", references, "--workers", 1).exit_code == 0


def test_records_without_ids_are_scored_by_their_position(run: Run, checkpoint: Path, tmp_path: Path) -> None:
    source, out, references = (tmp_path / name for name in ("in.jsonl", "out.jsonl", "references.txt"))
    source.write_text('{"text": "One word."}\n\n{"text": "Two words."}\n')
    assert run("summarize", checkpoint, source, *SHORT, "-o", out).exit_code == 0
    assert [row["id"] for row in rows(out)] == ["1", "3"]
    summaries = [row["summary"] for row in rows(out)]
    references.write_text("".join(f"{summary}\n" for summary in summaries))
    assert run("score", out, "--references", references, "--workers", 1).exit_code == 0


def test_ids_are_those_of_records_or_names_and_unique(run: Run, checkpoint: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out.jsonl"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text": "One.", "key": "q", "id": 1}\n' * 2 + '{"text": "Two.", "key": "p"}\n')
    (folder / "b.txt").write_text("Three.")
    assert run("summarize", checkpoint, folder, *SHORT, "-o", out).exit_code == 0
    assert [row["id"] for row in rows(out)] == ["1", "1#2", f"{folder}/a.jsonl:3", f"{folder}/b.txt"]
    assert run("summarize", checkpoint, folder, *SHORT, "--id-field", "key", "-o", out).exit_code == 0
    assert [row["id"] for row in rows(out)] == ["q", "q#2", "p", f"{folder}/b.txt"]
