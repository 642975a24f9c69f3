import json
import re
from itertools import count
from pathlib import Path

import pytest
from folders import contents

from pyramidions.base.errors import UserError
from pyramidions.data import encode as encode_module
from pyramidions.data import prepare as prepare_module
from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.vocabulary import Settings

pytestmark = pytest.mark.usefixtures("small_shards")
SMALL = Settings(vocab_size=60)
TRAIN, TEST = 30, 10  # documents


@pytest.fixture
def interrupt(out, corpora, monkeypatch):
    """Prepares, and presses Ctrl-C at a document, counted from 0 over all splits."""

    def run(at, settings=SMALL, error=KeyboardInterrupt, **options):
        add, numbers = encode_module._BegunShard.add, count()

        def add_or_stop(*args):
            if next(numbers) == at:
                raise error
            add(*args)

        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(encode_module._BegunShard, "add", add_or_stop)
            prepare(out, corpora, settings, **options)

    return run


@pytest.fixture
def encoded(monkeypatch):
    """The ids of the documents that are encoded from now on."""
    ids = []
    encode_chunk = encode_module._encode_chunk
    monkeypatch.setattr(
        encode_module, "_encode_chunk", lambda chunk: ids.extend(d.id for d in chunk) or encode_chunk(chunk)
    )
    return ids


def test_interrupted_again_and_again_it_comes_to_the_same_bytes(out, corpora, whole, interrupt):
    for _ in range(4):
        interrupt(9)
    assert prepare(out, corpora, SMALL)
    assert contents(out) == whole


def test_what_was_done_is_not_done_again(out, corpora, interrupt, encoded, monkeypatch):
    interrupt(22)
    encoded.clear()
    monkeypatch.setattr(prepare_module, "train_tokenizer", None)
    assert prepare(out, corpora, SMALL)
    assert encoded == [f"paper-{i}" for i in range(16, TRAIN + TEST)]


def test_the_bar_counts_on_from_the_last_shard(out, corpora, interrupt, capsys, monkeypatch):
    monkeypatch.setattr("pyramidions.files.progress.PATIENCE", 0.0)
    interrupt(22)
    capsys.readouterr()
    prepare(out, corpora, SMALL)
    messages = capsys.readouterr().err
    assert re.search(r"encoding train: +53%.* 16/30 \[00:00<\?", messages)
    assert re.search(r"encoding test: +0%.* 0/10 \[00:00<\?", messages)


def test_a_tokenizer_to_reuse_goes_on_too(out, tmp_path, corpora, whole, interrupt, encoded):
    model = tmp_path / "whole" / "data" / "sentencepiece.model"
    interrupt(22, None, tokenizer=model)
    encoded.clear()
    assert prepare(out, corpora, tokenizer=model)
    assert len(encoded) == TRAIN + TEST - 16
    for name in whole.keys() - {"manifest.json"}:
        assert contents(out)[name] == whole[name]


# What is left of the 16 documents in two shards when a file of the interrupted run is damaged.
LEFT = {".vocabulary": 16, ".train.0.shard": 0, ".train.1.shard": 8}
DAMAGE = {
    "cut": lambda data: data[: len(data) // 4],
    "changed": lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
    "missing": None,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", LEFT)
def test_what_is_damaged_is_done_anew(out, corpora, whole, interrupt, capsys, name, damage):
    interrupt(22)
    path = out.parent / ".data.partial" / name
    if DAMAGE[damage] is None:
        path.unlink()
    else:
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    capsys.readouterr()
    assert prepare(out, corpora, SMALL)
    assert contents(out) == whole
    messages = capsys.readouterr().err
    assert (f"{name} of the interrupted run is damaged: that part is done anew" in messages) == (damage != "missing")
    # The vocabulary that is trained anew is the same, and so what was encoded with it stays good.
    assert re.findall("goes on after (.*) of 30", messages) == [str(LEFT[name])][: LEFT[name]]


def test_what_is_made_of_other_documents_or_settings_is_not_taken(out, tmp_path, corpora, interrupt, capsys):
    for number, wanted in enumerate(((corpora, Settings(vocab_size=61)), ({"train": corpora["train"]}, SMALL))):
        interrupt(TRAIN + 9)
        capsys.readouterr()
        assert prepare(out, *wanted, overwrite=True)
        messages = capsys.readouterr().err
        assert "goes on" not in messages and "takes" not in messages
        fresh = tmp_path / f"fresh-{number}"
        prepare(fresh, *wanted)
        assert contents(out) == contents(fresh)
        for path in out.iterdir():
            path.unlink()


def test_what_is_made_by_another_version_is_not_taken(out, corpora, interrupt, encoded, monkeypatch):
    interrupt(22)
    encoded.clear()
    monkeypatch.setattr("pyramidions.data.manifest.SPLITTER", "sentencex 0")
    assert prepare(out, corpora, SMALL)
    assert len(encoded) == TRAIN + TEST


def test_what_is_made_of_an_input_that_changed_since_is_not_taken(out, corpora, train_file, interrupt, encoded):
    interrupt(22)
    encoded.clear()
    lines = Path(train_file).read_text().splitlines(keepends=True)
    Path(train_file).write_text("".join([lines[0].replace("ba", "ki"), *lines[1:]]))
    assert prepare(out, corpora, SMALL)
    assert len(encoded) == TRAIN + TEST


def test_documents_that_stood_in_the_input_for_a_while_only_are_noticed(
    out, corpora, train_file, whole, interrupt, monkeypatch
):
    right = Path(train_file).read_text()
    wrong = right.replace("paper-3", "paper-x", 1)
    encode = prepare_module.encode

    def change_then_encode(*args):
        Path(train_file).write_text(wrong)
        return encode(*args)

    with monkeypatch.context() as patch:
        patch.setattr(prepare_module, "encode", change_then_encode)
        interrupt(22)
    Path(train_file).write_text(right)
    with pytest.raises(UserError, match=r"train\.jsonl changed while it was being read\."):
        prepare(out, corpora, SMALL)
    assert list(out.parent.iterdir()) == []
    assert prepare(out, corpora, SMALL)
    assert contents(out) == whole


def test_an_error_after_a_shard_leaves_nothing(out, interrupt):
    interrupt(22)
    interrupt(20, error=UserError)
    assert list(out.parent.iterdir()) == []


def test_the_old_folder_stays_until_the_interrupted_one_is_whole(out, corpora, interrupt, encoded):
    other = Settings(vocab_size=61)
    assert prepare(out, corpora, SMALL)
    old = contents(out)
    interrupt(22, other, overwrite=True)
    assert contents(out) == old
    assert not prepare(out, corpora, SMALL)
    with pytest.raises(UserError, match="give --overwrite to replace"):
        prepare(out, corpora, other)
    encoded.clear()
    assert prepare(out, corpora, other, overwrite=True)
    assert len(encoded) == TRAIN + TEST - 16
    assert DataFolder(out).tokenizer().vocab_size == 61
    assert [path.name for path in out.parent.iterdir()] == ["data"]


def test_references_are_json_lines_after_a_resumption(out, corpora, interrupt):
    interrupt(22)
    prepare(out, corpora, SMALL)
    lines = (out / "train.references.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [f"paper-{i}" for i in range(TRAIN)]
