"""`pyramidions import`, and what becomes of its checkpoint."""

import json
import lzma
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import Result
from conftest import SAMPLE
from fairseq.data import Dictionary
from fairseq_commands import TASK
from fairseq_commands import run as run_program
from small_pretrained import model_of, save

from pyramidions import Summarizer
from pyramidions.inference.checkpoint_file import read_checkpoint
from pyramidions.models.fitting import VOCABULARY, fingerprint, fingerprint_of
from pyramidions.text.tokenizer import Tokenizer

Run = Callable[..., Result]
POOLED = ["--max-source-positions", 120, "--self-attention", "blockwise", "--self-attention-args", '{"block_size": 40}']


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = save(model_of("bart"), tmp_path_factory.mktemp("bart"))
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    return folder


def test_it_says_what_was_taken_extended_and_made_anew(run: Run, bart: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text('{"article": "Bees fly fast over roses.", "abstract": "Bees fly."}\n' * 2)
    out = tmp_path / "bart.pt"
    done = run("import", bart, "-o", out, *POOLED, "--pooling-lengths", "None,8", "--compare", pairs, "--seed", 3)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("bart, licence apache-2.0: 2 + 2 layers, 16 wide, 340 pieces, ")
    assert "extended: encoder positions from 40 to 120, by copying" in lines
    assert "new: encoder.poolers.1.scorer.linear.weight, encoder.poolers.1.scorer.linear.bias" in lines
    assert "scaled so that their scores spread: poolers.1.scorer.linear" in lines
    told = [line.rpartition(" ") for line in lines if line.startswith("log-likelihood")]
    assert [words for words, *_ in told] == [
        f"log-likelihood of a token, mean over 2 pairs, {when}:" for when in ("before", "after")
    ]
    # Short texts are not pooled.
    assert told[0][2] != "nan" and len({value for *_, value in told}) == 2
    state = read_checkpoint(out)
    assert state["source"] == {"source": bart.name, "family": "bart", "licence": "apache-2.0"}


def test_summaries_need_nothing_but_the_checkpoint(run: Run, bart: Path, tmp_path: Path) -> None:
    assert run("import", bart, "-o", tmp_path / "bart.pt").exit_code == 0
    (found,) = Summarizer.from_pretrained(tmp_path / "bart.pt", "cpu").summarize(["Bees fly."], max_len=8, min_len=8)
    # The end, and what stands in front of every text.
    assert found.tokens == 9 and found.document_tokens == found.read_tokens > 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-o", "bart.ckpt"], "--out must end in .pt, but is bart.ckpt."),
        (["-o", "b.pt", "--max-source-positions", 1], "--max-source-positions must be a whole number from 2 to "),
        (["-o", "b.pt", "--self-attention", "half"], "--self-attention must be one of blockwise, "),
        (["-o", "b.pt", "--scorer", "random"], "--scorer is an option of --pooling-lengths, which is not given."),
    ],
)
def test_what_breaks_a_rule_writes_nothing(
    fail: Callable[..., str],
    bart: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[object],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fail("import", bart, *arguments).startswith(sentence)
    assert not list(tmp_path.iterdir())


def test_the_vocabulary_is_known_by_the_number_that_fairseq_computes(bart: Path) -> None:
    from pyramidions.pretrained.importing import import_model

    tokenizer: Tokenizer = import_model(bart).model.tokenizer
    dictionary = Dictionary()
    for piece in tokenizer.pieces()[4:]:
        dictionary.add_symbol(piece)
    assert fingerprint_of(tokenizer.pieces()) == fingerprint(dictionary)


@pytest.mark.slow
def test_an_imported_model_is_trained_resumed_and_summarizes(run: Run, bart: Path, tmp_path: Path) -> None:
    imported, data = tmp_path / "bart.pt", tmp_path / "data"
    done = run("import", bart, "-o", imported, *POOLED, "--pooling-lengths", "None,8")
    assert done.exit_code == 0, done.output
    flags = shlex.split(done.stdout[done.stdout.index("--finetune-from-model") :].replace("\\\n", " "))
    papers = tmp_path / "papers"
    papers.mkdir()
    for split, count in (("train", 12), ("valid", 4), ("test", 4)):
        with lzma.open(SAMPLE / f"{split}.jsonl.xz", "rt") as lines:
            (papers / f"{split}.jsonl").write_text("".join(line for _, line in zip(range(count), lines, strict=False)))
    made = run_program("pyramidions", "prepare", papers, "--out", data, "--tokenizer", imported)
    assert made.returncode == 0, made.stdout

    def train(save_dir: str, updates: int) -> dict[str, torch.Tensor]:
        # fairseq ignores the checkpoint to start from where there is one to go on with.
        done = run_program(
            *("fairseq-train", data, *TASK, *flags, "--save-dir", tmp_path / save_dir),
            *("--criterion", "pooled_cross_entropy", "--optimizer", "adam", "--lr", "0.001", "--batch-size", "4"),
            *("--max-update", updates, "--save-interval-updates", "2", "--num-workers", "0", "--disable-validation"),
        )
        assert done.returncode == 0, done.stdout
        return read_checkpoint(tmp_path / save_dir / "checkpoint_last.pt")["model"]

    whole, _ = train("whole", 5), train("parts", 2)
    resumed, before = train("parts", 5), read_checkpoint(imported)["model"]
    assert all(torch.equal(weight, whole[name]) for name, weight in resumed.items())
    assert whole.keys() == before.keys() and int(whole[VOCABULARY]) == int(before[VOCABULARY])
    assert any(not torch.equal(weight, whole[name]) for name, weight in before.items())
    path = tmp_path / "whole" / "checkpoint_last.pt"
    written = run_program(
        *("fairseq-generate", data, *TASK, "--path", path, "--batch-size", "2", "--max-len-b", "9", "--min-len", "1"),
        *("--results-path", tmp_path / "generated"),
    )
    assert written.returncode == 0, written.stdout
    assert run("score", tmp_path / "generated" / "generate-test.txt", "--data", data, "--workers", 1).exit_code == 0
    assert run("export", path, tmp_path / "export").exit_code == 0
    summaries, page = tmp_path / "summaries.jsonl", tmp_path / "page.html"
    done = run(
        *(
            "summarize",
            tmp_path / "export",
            papers / "test.jsonl",
            "--field",
            "article",
            "--max-len",
            9,
            "--min-len",
            1,
        ),
        *("-o", summaries, "--explain", page),
    )
    assert done.exit_code == 0, done.output
    ours = [json.loads(line)["summary"] for line in summaries.read_text().splitlines()]
    theirs = {
        int(line.split("\t")[0][2:]): line.split("\t")[2]
        for line in (tmp_path / "generated" / "generate-test.txt").read_text().splitlines()
        if line.startswith("D-")
    }
    assert ours == [" ".join(theirs[number].split()) for number in range(4)]
