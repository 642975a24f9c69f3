"""Queries through every command: prepared, trained with, generated from, typed in, exported and summarized."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fairseq_commands import TASK, run, train
from small_tokenizers import bart_bytes

from pyramidions.cli import main
from pyramidions.data.folder import DataFolder
from pyramidions.inference import load_model

# Texts of a prefix, too, as BART's tokenizer has one.
QUERIES = ["Why do bees fly?", "Who reads longer documents, and for how many steps?"]
RECORDS = [
    {
        "id": "meeting",
        "query": query,
        "article": f"Longer documents are read by models. Bees fly fast over {number} roses. " * 20,
        "abstract": f"Bees fly {number}.",
    }
    for number in range(4)
    for query in QUERIES
]
SHORT = ["--beam", "2", "--min-len", "4", "--max-len-b", "12"]


def command(*words: object) -> Result:
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    root = tmp_path_factory.mktemp("meetings")
    (root / "bart.json").write_bytes(bart_bytes())
    for split, count in (("train", 8), ("valid", 2), ("test", 4)):
        (root / f"{split}.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in RECORDS[:count]))
    options = ("--query-field", "query", "--number-repeated-ids", "--tokenizer", root / "bart.json", "--workers", 1)
    command("prepare", root, "--out", root / "data", *options)
    return DataFolder(root / "data")


@pytest.mark.slow
def test_all_commands_write_the_same_summaries(prepared: DataFolder, tmp_path: Path) -> None:
    train(prepared, tmp_path, "--max-update", "4", "--scorer", "query", "--no-epoch-checkpoints")
    best = tmp_path / "checkpoint_last.pt"
    done = run("fairseq-generate", prepared.path, *TASK, "--path", best, *SHORT, "--gen-subset", "test")
    assert done.returncode == 0, done.stdout
    written = dict(re.findall(r"^D-(\d+)\t\S+\t(.*)$", done.stdout, re.MULTILINE))
    lines = [f"{record['query']}\t{record['article']}\n" for record in RECORDS[:4]]
    (tmp_path / "lines.txt").write_text("".join(lines))
    typed = run("fairseq-interactive", tmp_path, *TASK, "--path", best, *SHORT, "--input", tmp_path / "lines.txt")
    assert typed.returncode == 0, typed.stdout
    assert dict(re.findall(r"^D-(\d+)\t\S+\t(.*)$", typed.stdout, re.MULTILINE)) == written
    command("export", best, tmp_path / "export")
    assert load_model(tmp_path / "export").queries
    decoding = ("--beam", 2, "--min-len", 4, "--max-len", 12, "--precision", "float32", "--json")
    found = command(
        "summarize", tmp_path / "export", prepared.path.parent / "test.jsonl", *decoding, "--query-field", "query"
    )
    answers = [json.loads(line) for line in found.stdout.splitlines()]
    assert [answer["summary"] for answer in answers] == [written[str(number)] for number in range(4)]
    assert [(answer["id"], answer["query"]) for answer in answers] == [
        (reference.id, record["query"]) for reference, record in zip(prepared.references("test"), RECORDS, strict=False)
    ]
    (tmp_path / "lines.txt").write_text("No tab.\n")
    typed = run("fairseq-interactive", tmp_path, *TASK, "--path", best, *SHORT, "--input", tmp_path / "lines.txt")
    assert typed.returncode != 0 and "each line must hold a query, a tab and a document" in typed.stdout
