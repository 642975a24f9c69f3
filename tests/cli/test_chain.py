"""Every output of a command is an input of the next one, as it is."""

import json
import lzma
from collections.abc import Callable
from pathlib import Path

from click.testing import Result
from conftest import SAMPLE

from pyramidions.data.folder import DataFolder

SHORT = ["--beam", 1, "--min-len", 1, "--max-len", 3]
Run = Callable[..., Result]


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_summaries_are_scored_exported_and_summarized_again(
    run: Run, checkpoint: Path, data: DataFolder, tmp_path: Path
) -> None:
    names = ("test.jsonl", "summaries.jsonl", "shuffled.jsonl", "scores.json", "again.jsonl")
    corpus, summaries, shuffled, scores, again = (tmp_path / name for name in names)
    with lzma.open(SAMPLE / "test.jsonl.xz", "rt") as papers:
        corpus.write_text("".join(line for _, line in zip(range(10), papers, strict=False)))
    # A file that ends in .jsonl gets JSON.
    done = run("summarize", checkpoint, corpus, "--field", "article", *SHORT, "-o", summaries)
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows(summaries)] == [reference.id for reference in data.references("test")]
    assert [row["name"] for row in rows(summaries)] == [f"{corpus}:{number}" for number in range(1, 11)]
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


def test_ids_are_those_of_records_their_places_or_names_and_unique(run: Run, checkpoint: Path, tmp_path: Path) -> None:
    folder, out, references = tmp_path / "in", tmp_path / "out.jsonl", tmp_path / "references.txt"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"text": "One.", "key": "q", "id": 1}\n' * 2 + '{"text": "Two.", "key": "p"}\n')
    (folder / "b.txt").write_text("Three.")
    assert run("summarize", checkpoint, folder, *SHORT, "-o", out).exit_code == 0
    assert [row["id"] for row in rows(out)] == ["1", "1#2", f"{folder}/a.jsonl:3", f"{folder}/b.txt"]
    assert run("summarize", checkpoint, folder, *SHORT, "--id-field", "key", "-o", out).exit_code == 0
    assert [row["id"] for row in rows(out)] == ["q", "q#2", "p", f"{folder}/b.txt"]
    (folder / "a.jsonl").write_text('{"text": "One word."}\n\n{"text": "Two words."}\n')
    assert run("summarize", checkpoint, folder / "a.jsonl", *SHORT, "-o", out).exit_code == 0
    assert [row["id"] for row in rows(out)] == ["1", "3"]
    references.write_text("One.\nTwo.\n")
    assert run("score", out, "--references", references, "--workers", 1).exit_code == 0
