import re
from pathlib import Path

import pytest
from folders import contents
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.data import prepare as prepare_module
from pyramidions.data.encode import Encoder
from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.vocabulary import Settings

SMALL = Settings(vocab_size=60)
TRAIN, TEST = 30, 10  # documents


@pytest.fixture
def interrupt(out, corpora, interrupted):
    """Prepares, and presses Ctrl-C at a document."""

    def run(at, settings=SMALL, error=KeyboardInterrupt, **options):
        with interrupted(at, error):
            prepare(out, corpora, settings, **options)

    return run


@pytest.fixture
def encoded(monkeypatch):
    """The ids of the documents that are encoded from now on."""
    ids = []
    encode_chunk = Encoder.__call__
    monkeypatch.setattr(Encoder, "__call__", lambda *given: ids.extend(d.id for d in given[-1]) or encode_chunk(*given))
    return ids


def test_what_was_done_is_not_done_again(out, corpora, whole, interrupt, encoded, monkeypatch):
    # The last time within the test split, of which nothing is kept.
    for at in (9, TRAIN + 5, 2):
        interrupt(at)
    encoded.clear()
    monkeypatch.setattr(prepare_module, "train_tokenizer", None)
    assert prepare(out, corpora, SMALL)
    assert encoded == [f"paper-{i}" for i in range(TRAIN, TRAIN + TEST)]
    assert contents(out) == whole


def cut(path):
    path.write_bytes(path.read_bytes()[:40])


def change(path):
    data = path.read_bytes()
    path.write_bytes(data[:9] + bytes([data[9] ^ 128]) + data[10:])


# A vocabulary that is trained anew is the same, and so what was encoded with it stays good.
@pytest.mark.parametrize(
    ("name", "damage", "part"),
    [
        ("sentencepiece.model", change, "vocabulary"),
        (".vocabulary.part", cut, "vocabulary"),
        ("sentencepiece.model", Path.unlink, "vocabulary"),
        ("train.source.bin", change, "train"),
        ("train.source.bin", Path.unlink, "train"),
        ("train.references.jsonl", cut, "train"),
        (".train.part", change, "train"),
        (".train.part", Path.unlink, None),
    ],
)
def test_what_is_damaged_is_done_anew(out, corpora, whole, interrupt, capsys, name, damage, part):
    interrupt(TRAIN + 2)
    damage(out.parent / ".data.partial" / name)
    capsys.readouterr()
    assert prepare(out, corpora, SMALL)
    assert contents(out) == whole
    messages = capsys.readouterr().err
    assert re.findall("(vocabulary|train) of the interrupted run is damaged", messages) == ([part] if part else [])
    assert ("takes the train split" in messages) == (part == "vocabulary")


@pytest.mark.parametrize("wanted", [{"settings": Settings(vocab_size=61)}, {"splits": ["train"]}])
def test_what_is_made_of_other_documents_or_settings_is_not_taken(out, tmp_path, corpora, interrupt, capsys, wanted):
    few = {split: corpora[split] for split in wanted.get("splits", corpora)}, wanted.get("settings", SMALL)
    interrupt(TRAIN + 9)
    capsys.readouterr()
    assert prepare(out, *few)
    assert "takes" not in capsys.readouterr().err
    prepare(tmp_path / "fresh", *few)
    assert contents(out) == contents(tmp_path / "fresh")


@pytest.mark.parametrize("changed", ["input", "version"])
def test_what_is_made_of_a_changed_input_or_by_another_version_is_not_taken(
    out, corpora, train_file, interrupt, encoded, monkeypatch, changed
):
    interrupt(TRAIN + 2)
    encoded.clear()
    if changed == "version":
        monkeypatch.setattr("pyramidions.data.manifest.SPLITTER", "sentencex 0")
    else:
        lines = Path(train_file).read_text().splitlines(keepends=True)
        Path(train_file).write_text("".join([lines[0].replace("ba", "ki"), *lines[1:]]))
    assert prepare(out, corpora, SMALL)
    assert len(encoded) == TRAIN + TEST


def test_an_input_that_changes_while_it_is_encoded_is_refused(out, corpora, train_file, whole, monkeypatch):
    right = Path(train_file).read_text()
    encode = prepare_module.encode

    def change_then_encode(*args):
        Path(train_file).write_text(right.replace("paper-3", "paper-x", 1))
        return encode(*args)

    with monkeypatch.context() as patch:
        patch.setattr(prepare_module, "encode", change_then_encode)
        with refused("train.jsonl"):
            prepare(out, corpora, SMALL)
    assert list(out.parent.iterdir()) == []
    Path(train_file).write_text(right)
    assert prepare(out, corpora, SMALL)
    assert contents(out) == whole


def test_an_error_after_a_split_leaves_nothing(out, interrupt):
    interrupt(TRAIN + 2)
    interrupt(2, error=UserError)
    assert list(out.parent.iterdir()) == []


def test_the_old_folder_stays_until_the_interrupted_one_is_whole(out, corpora, interrupt, encoded):
    other = Settings(vocab_size=61)
    assert prepare(out, corpora, SMALL)
    old = contents(out)
    interrupt(TRAIN + 2, other, overwrite=True)
    assert contents(out) == old
    assert not prepare(out, corpora, SMALL)
    with pytest.raises(UserError):
        prepare(out, corpora, other)
    encoded.clear()
    assert prepare(out, corpora, other, overwrite=True)
    assert len(encoded) == TEST
    assert DataFolder(out).tokenizer().vocab_size == 61
    assert [path.name for path in out.parent.iterdir()] == ["data"]
