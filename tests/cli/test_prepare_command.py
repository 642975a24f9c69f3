"""`pyramidions prepare` of documents; tests/bad_input has what it refuses."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from folders import contents
from full_disk import files_of_at_most
from invoking import fail, run, succeed
from texts_in_languages import PAPERS

from pyramidions.cli.prepare import prepare
from pyramidions.data.folder import DataFolder
from pyramidions.data.vocabulary import Settings


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_folder_of_files_becomes_a_data_folder_with_a_report(papers: Path, tmp_path: Path) -> None:
    command = ("prepare", papers, "--out", tmp_path / "data", "--vocab-size", 60)
    result = succeed(*command)
    assert re.findall(r"(\d+) (?:pieces|documents)", result.stdout) == ["60", "30", "5"]
    assert DataFolder(tmp_path / "data").splits == ["train", "test"]
    assert re.findall(r"is up to date: same (\w+), same (\w+)", run(*command).stdout) == [("documents", "settings")]


def test_single_files_and_a_tokenizer_can_be_given(papers: Path, prepared: Path, tmp_path: Path) -> None:
    tokenizer = prepared / "sentencepiece.model"
    succeed("prepare", "--valid", papers / "test.jsonl", "--tokenizer", tokenizer, "--out", tmp_path / "data")
    assert (tmp_path / "data" / "valid.source.bin").read_bytes() == (prepared / "test.source.bin").read_bytes()


def test_every_setting_of_a_vocabulary_is_an_option(papers: Path, tmp_path: Path) -> None:
    words = "--vocab-size 55 --model-type bpe --character-coverage 0.99 --sentence-markers --sentences 400 --seed 3"
    succeed("prepare", papers, "--out", tmp_path / "data", *words.split(), "--workers", 2)
    assert DataFolder(tmp_path / "data").manifest["settings"] == {
        "vocab_size": 55,
        "model_type": "bpe",
        "character_coverage": 0.99,
        "sentence_markers": True,
        "sentences": 400,
        "seed": 3,
    }
    options = {option.name: option.default for option in prepare.params}
    for field in fields(Settings):
        assert options[field.name] == field.default
        option = "--" + field.name.replace("_", "-")
        value = [] if field.default is False else [field.default]
        said = fail("prepare", "--train", "x.jsonl", "--tokenizer", "x", option, *value, "--out", "x")
        assert said.startswith(f"{option} is an option of training a vocabulary")


def test_field_names_empty_documents_and_repeated_ids_are_options(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"key": i // 2, "body": f"some words here {i}.", "gist": "few words."} for i in range(20)
    ]
    write(tmp_path / "train.jsonl", [*rows, {"key": 99, "body": "", "gist": "nothing"}])
    options = "--source-field body --target-field gist --id-field key --vocab-size 25 --skip-empty".split()
    options.append("--number-repeated-ids")
    result = succeed("prepare", tmp_path, "--out", tmp_path / "data", *options)
    assert re.findall(r"train: (\d+) documents.*; (\d+) empty one left out", result.stdout) == [("20", "1")]
    assert [each.id for each in DataFolder(tmp_path / "data").references("train")][:4] == ["0", "0#2", "1", "1#2"]


def test_a_full_disk_leaves_nothing(papers: Path, tmp_path: Path) -> None:
    out = tmp_path / "data"
    with files_of_at_most(2000):
        said = fail("prepare", papers, "--out", out, "--vocab-size", "60", "--workers", "1")
    assert str(out) in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["train"], "no valid and no test split: fairseq-train needs valid, unless --disable-validation"),
        (["train", "valid"], "no test split: fairseq-generate needs test, unless --gen-subset names another"),
        (["test"], "no train and no valid split: fairseq-train needs train"),
    ],
)
def test_missing_splits_are_named(
    papers: Path, prepared: Path, tmp_path: Path, given: list[str], sentence: str
) -> None:
    files = {"train": papers / "train.jsonl", "valid": papers / "test.jsonl", "test": papers / "test.jsonl"}
    options = [part for split in given for part in (f"--{split}", files[split])]
    result = succeed("prepare", *options, "--tokenizer", prepared / "sentencepiece.model", "--out", tmp_path / "data")
    assert sentence in result.stderr.splitlines()


@pytest.mark.parametrize(
    ("number", "code", "sentence"),
    [(signal.SIGTERM, 143, "Error: Terminated."), (signal.SIGINT, 130, "Error: Interrupted.")],
)
def test_told_to_stop_with_its_workers_it_goes_on_when_called_again(
    papers: Path, prepared: Path, tmp_path: Path, number: int, code: int, sentence: str
) -> None:
    script = """if True:
        import sys, time
        from pyramidions.data import making
        finish = making.finish_part
        def finish_and_wait(folder, name, *given):
            finish(folder, name, *given)
            if name == "train":
                print("saved", flush=True)
                time.sleep(60)
        making.finish_part = finish_and_wait
        from pyramidions.cli import main
        main(sys.argv[1:])
    """
    arguments = ["prepare", str(papers), "--out", str(tmp_path / "data"), "--vocab-size", "60"]
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments, "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "saved\n"
        # The terminal and SLURM send it to every process of the group.
        os.killpg(process.pid, number)
        _, messages = process.communicate()
    assert process.returncode == code
    assert messages.splitlines()[-1] == sentence
    assert [path.name for path in tmp_path.iterdir()] == [".data.partial"]
    result = succeed(*arguments, "--workers", 1)
    assert re.findall(r"^takes the (\w+)", result.stderr, re.MULTILINE) == ["vocabulary", "train"]
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert contents(tmp_path / "data") == contents(prepared)


def test_labels_are_those_of_the_language(tmp_path: Path) -> None:
    write(
        tmp_path / "train.jsonl",
        [
            {"id": f"{code}{n}", "article": written.text, "abstract": written.summary}
            for n in range(12)
            for code, written in PAPERS.items()
        ],
    )
    command = ["prepare", "--train", tmp_path / "train.jsonl", "--vocab-size", 400, "--labels"]
    succeed(*command, "--out", tmp_path / "told", "--character-coverage", 1)
    chosen = DataFolder(tmp_path / "told").manifest["splits"]["train"]["chosen_sentences"]
    assert chosen["max"] == 1 and chosen["mean"] == 1
    succeed(*command, "--out", tmp_path / "given", "--character-coverage", 1, "--language", "de")
    assert DataFolder(tmp_path / "given").manifest["settings"]["language"] == "de"
