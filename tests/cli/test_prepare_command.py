import json
import os
import signal
import subprocess
import sys
from dataclasses import fields

import pytest
from tables import for_each
from texts_in_languages import PAPERS

from pyramidions.cli.prepare import prepare
from pyramidions.data.folder import DataFolder
from pyramidions.data.vocabulary import Settings


def test_a_folder_of_files_becomes_a_data_folder_with_a_report(run, papers, tmp_path):
    result = run("prepare", papers, "--out", tmp_path / "data", "--vocab-size", 60)
    assert result.exit_code == 0
    assert "60 pieces\n  train: 30 documents, on average" in result.stdout
    assert DataFolder(tmp_path / "data").splits == ["train", "test"]


def test_run_again_it_keeps_what_is_there(run, papers, prepared):
    result = run("prepare", papers, "--out", prepared, "--vocab-size", 60)
    assert result.exit_code == 0
    assert "is up to date: same documents, same settings." in result.stdout


def test_single_files_and_a_tokenizer_can_be_given(run, papers, prepared, tmp_path):
    tokenizer = prepared / "sentencepiece.model"
    result = run("prepare", "--valid", papers / "test.jsonl", "--tokenizer", tokenizer, "--out", tmp_path / "data")
    assert result.exit_code == 0
    assert (tmp_path / "data" / "valid.source.bin").read_bytes() == (prepared / "test.source.bin").read_bytes()


def test_every_option_reaches_the_folder(run, papers, tmp_path):
    options = "--vocab-size 55 --model-type bpe --character-coverage 0.99 --sentence-markers --sentences 400 --seed 3"
    result = run("prepare", papers, "--out", tmp_path / "data", *options.split(), "--workers", 2)
    assert result.exit_code == 0
    assert DataFolder(tmp_path / "data").manifest["settings"] == {
        "vocab_size": 55,
        "model_type": "bpe",
        "character_coverage": 0.99,
        "sentence_markers": True,
        "sentences": 400,
        "seed": 3,
    }


def test_field_names_and_empty_documents_are_options(run, tmp_path):
    rows = [{"key": i, "body": f"some words here {i}.", "gist": "few words."} for i in range(20)]
    rows.append({"key": 99, "body": "", "gist": "nothing"})
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = "--source-field body --target-field gist --id-field key --vocab-size 25".split()
    result = run("prepare", tmp_path, "--out", tmp_path / "data", *fields, "--skip-empty")
    assert result.exit_code == 0, result.output
    assert "train: 20 documents" in result.stdout
    assert "1 empty one left out" in result.stdout
    assert DataFolder(tmp_path / "data").references("train")[3].id == "3"


@for_each(
    ("arguments", "sentence"),
    [
        ([], "At least one of train, valid and test must be given."),
        (["--train", "nowhere.jsonl"], "The file nowhere.jsonl does not exist."),
        (["--train", "nowhere.jsonl", "--vocab-size", "3"], "--vocab-size must be above 4"),
        (["--train", "nowhere.jsonl", "--character-coverage", "2"], "--character-coverage must be from 0.98 to 1"),
        (["--train", "nowhere.jsonl", "--sentences", "0"], "--sentences must be at least 1"),
        (["--train", "x.jsonl", "--tokenizer", "no.model"], "The tokenizer no.model does not exist."),
        (
            ["--train", "x.jsonl", "--tokenizer", "x", "--vocab-size", "9"],
            "--vocab-size is an option of training a vocabulary;",
        ),
        ([__file__], f"INPUT must be a folder or a dataset, but is the file {__file__}; give it with --train, --valid"),
        (["--train", __file__, "--config", "document"], "--config is for Hugging Face datasets, but"),
    ],
)
def test_bad_input_is_one_sentence(fail, tmp_path, arguments, sentence):
    assert fail("prepare", *arguments, "--out", tmp_path / "data").startswith(sentence)
    assert not (tmp_path / "data").exists()


def test_a_file_that_must_not_be_written_further_leaves_nothing(papers, tmp_path):
    """A limit on the size of files is met like a full disk: by an error from the operating system."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000));"
        "from pyramidions.cli import main; main(sys.argv[1:])"
    )
    out = tmp_path / "data"
    arguments = ["prepare", papers, "--out", out, "--vocab-size", "60", "--workers", "1"]
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == f"Error: Writing {out} failed (File too large)."
    assert "Traceback" not in run.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_release_is_prepared_as_it_comes(run, tmp_path):
    record = {"article_text": ["some words here .", "and more ."], "abstract_text": ["<S> few words . </S>"]}
    for split in ("train", "val", "test"):
        lines = (json.dumps({"article_id": f"{split}-{i}", **record}) + "\n" for i in range(20))
        (tmp_path / f"{split}.txt").write_text("".join(lines))
    result = run("prepare", tmp_path, "--out", tmp_path / "data", "--vocab-size", 19)
    assert result.exit_code == 0, result.output
    assert DataFolder(tmp_path / "data").splits == ["train", "valid", "test"]
    assert DataFolder(tmp_path / "data").references("valid")[3] == ("val-3", "few words .")


def test_every_setting_of_a_vocabulary_is_an_option_with_its_default():
    options = {option.name: option.default for option in prepare.params}
    for field in fields(Settings):
        assert options[field.name] == field.default


@pytest.mark.parametrize("field", fields(Settings), ids=lambda field: field.name)
def test_no_setting_stands_beside_a_tokenizer(fail, field):
    option = "--" + field.name.replace("_", "-")
    value = [] if field.default is False else [field.default]
    sentence = fail("prepare", "--train", "x.jsonl", "--tokenizer", "x", option, *value, "--out", "x")
    assert sentence == f"{option} is an option of training a vocabulary; --tokenizer excludes it."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["train"], "no valid and no test split: fairseq-train needs valid, unless --disable-validation"),
        (["train", "test"], "no valid split: fairseq-train needs valid, unless --disable-validation"),
        (["train", "valid"], "no test split: fairseq-generate needs test, unless --gen-subset names another"),
        (["test"], "no train and no valid split: fairseq-train needs train"),
    ],
)
def test_missing_splits_are_named(run, papers, prepared, tmp_path, given, sentence):
    files = {"train": papers / "train.jsonl", "valid": papers / "test.jsonl", "test": papers / "test.jsonl"}
    options = [part for split in given for part in (f"--{split}", files[split])]
    result = run("prepare", *options, "--tokenizer", prepared / "sentencepiece.model", "--out", tmp_path / "data")
    assert result.exit_code == 0
    assert sentence in result.stderr.splitlines()


def test_a_vocabulary_too_large_names_the_option(fail, papers, tmp_path):
    assert fail("prepare", papers, "--out", tmp_path / "data").startswith("--vocab-size must be at most ")


@pytest.mark.parametrize(
    ("number", "code", "sentence"),
    [
        (signal.SIGTERM, 143, "Error: Terminated."),
        (signal.SIGINT, 130, "Error: Interrupted."),
    ],
)
def test_told_to_stop_with_its_workers_it_goes_on_when_called_again(
    run, papers, prepared, tmp_path, number, code, sentence
):
    script = """if True:
        import sys, time
        from pyramidions.data import prepare
        finish = prepare.finish_part
        def finish_and_wait(folder, name, *given):
            finish(folder, name, *given)
            if name == "train":
                print("saved", flush=True)
                time.sleep(60)
        prepare.finish_part = finish_and_wait
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
        assert process.stdout.readline() == "saved\n"
        # The terminal and SLURM send it to every process of the group.
        os.killpg(process.pid, number)
        _, messages = process.communicate()
    assert process.returncode == code
    assert messages.splitlines()[-1] == sentence
    assert [path.name for path in tmp_path.iterdir()] == [".data.partial"]
    result = run(*arguments, "--workers", 1)
    assert result.exit_code == 0, result.output
    assert "takes the vocabulary that was trained before" in result.stderr.splitlines()
    assert "takes the train split that was encoded before" in result.stderr.splitlines()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    for path in prepared.iterdir():
        assert (tmp_path / "data" / path.name).read_bytes() == path.read_bytes()


def test_repeated_ids_are_refused_with_the_option_that_numbers_them(run, fail, tmp_path):
    rows = [{"id": f"query-{i // 2}", "article": f"some words here {i}.", "abstract": "few words."} for i in range(20)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["prepare", tmp_path, "--out", tmp_path / "data", "--vocab-size", 25]
    assert fail(*arguments) == (
        f"{tmp_path}/train.jsonl, line 2: the id 'query-0' came before; ids must be unique; "
        "--number-repeated-ids numbers them."
    )
    assert run(*arguments, "--number-repeated-ids").exit_code == 0
    ids = [reference.id for reference in DataFolder(tmp_path / "data").references("train")]
    assert ids[:4] == ["query-0", "query-0#2", "query-1", "query-1#2"] and len(set(ids)) == 20


def test_labels_are_those_of_the_language(run, tmp_path):
    rows = [
        {"id": f"{code}{n}", "article": written.text, "abstract": written.summary}
        for n in range(12)
        for code, written in PAPERS.items()
    ]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["prepare", "--train", tmp_path / "train.jsonl", "--vocab-size", 400, "--labels"]
    told = run(*command, "--out", tmp_path / "told", "--character-coverage", 1)
    assert told.exit_code == 0, told.output
    chosen = DataFolder(tmp_path / "told").manifest["splits"]["train"]["chosen_sentences"]
    assert chosen["max"] == 1 and chosen["mean"] == 1
    given = run(*command, "--out", tmp_path / "given", "--character-coverage", 1, "--language", "de")
    assert given.exit_code == 0, given.output
    assert DataFolder(tmp_path / "given").manifest["settings"]["language"] == "de"
