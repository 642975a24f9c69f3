import errno
import gzip
import hashlib
import os
from pathlib import Path

import pytest
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from folders import contents
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.data import prepare as prepare_module
from pyramidions.data import readers
from pyramidions.data.characters import CharacterSettings, prepare_characters
from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus
from pyramidions.data.text_streams import open_text
from pyramidions.data.vocabulary import Settings
from pyramidions.text.tokenizer import EOS, SENTENCE_MARKER

SMALL = Settings(vocab_size=60)


@pytest.fixture
def made(tmp_path, corpora):
    assert prepare(tmp_path / "data", corpora, SMALL)
    return tmp_path / "data"


def test_the_folder_holds_what_fairseq_and_scoring_need(made, records):
    folder = DataFolder(made)
    tokenizer = folder.tokenizer()
    assert len(Dictionary.load(str(folder.dictionary_path))) == tokenizer.vocab_size == 60
    source, target = (MMapIndexedDataset(folder.indexed("test", side)) for side in ("source", "target"))
    assert len(source) == len(target) == 10
    for i, record in enumerate(records[30:]):
        assert source[i].tolist() == [*tokenizer.encode(record["article"]), EOS]
        assert target[i].tolist() == [*tokenizer.encode(record["abstract"]), EOS]
        assert tokenizer.decode(source[i].tolist()) == record["article"]
        assert folder.references("test")[i] == (record["id"], record["abstract"])
    assert folder.splits == ["train", "test"]


def test_the_manifest_counts_and_hashes(made, records):
    manifest = DataFolder(made).manifest
    target = MMapIndexedDataset(str(made / "train.target"))
    words = [len(record["abstract"].split()) for record in records[:30]]
    numbers = manifest["splits"]["train"]
    assert manifest["inputs"]["train"]["documents"] == numbers["documents"] == 30
    assert numbers["target_tokens"]["min"] == min(target.sizes)
    assert numbers["target_tokens"]["max"] == max(target.sizes)
    assert numbers["target_words"]["mean"] == pytest.approx(sum(words) / 30, abs=0.005)
    assert manifest["settings"]["vocab_size"] == 60
    for name, digest in manifest["files"].items():
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() == digest
    assert {*manifest["files"], "manifest.json"} == {path.name for path in made.iterdir()}


def test_the_same_documents_give_the_same_bytes_anywhere(made, tmp_path, train_file, test_file):
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(Path(train_file).read_bytes()))
    again = {"train": Corpus(str(packed)), "test": Corpus(test_file)}
    prepare(tmp_path / "elsewhere" / "again", again, SMALL, workers=2)
    assert contents(tmp_path / "elsewhere" / "again") == contents(made)
    assert str(tmp_path).encode() not in b"".join(contents(made).values())


def test_the_same_inputs_and_settings_are_not_prepared_again_but_a_damaged_folder_is(made, corpora):
    whole, before = contents(made), {path: path.stat().st_mtime_ns for path in made.iterdir()}
    assert not prepare(made, corpora, SMALL)
    assert {path: path.stat().st_mtime_ns for path in made.iterdir()} == before
    (made / "test.source.bin").write_bytes(b"x")
    (made / "dict.txt").unlink()
    assert prepare(made, corpora, SMALL)
    assert contents(made) == whole


def test_other_documents_or_settings_replace_a_folder_only_on_demand(made, corpora, train_file):
    whole = contents(made)
    for wanted in (({"train": Corpus(train_file)}, SMALL), (corpora, Settings(vocab_size=61))):
        with pytest.raises(UserError):
            prepare(made, *wanted)
        assert contents(made) == whole
    assert prepare(made, corpora, Settings(vocab_size=61), overwrite=True)
    assert DataFolder(made).tokenizer().vocab_size == 61
    assert [path for path in made.parent.iterdir() if path.name.startswith(".")] == []


def test_files_that_others_put_into_a_folder_are_never_lost(made, corpora):
    (made / "generate-test.txt").write_text("H-0")
    assert not prepare(made, corpora, SMALL)
    (made / "train.source.idx").unlink()
    whole = contents(made)
    for overwrite in (False, True):
        with refused("generate-test.txt,"):
            prepare(made, corpora, SMALL, overwrite=overwrite)
        assert contents(made) == whole
    (made / "notes").mkdir()
    with refused("generate-test.txt and 1 more"):
        prepare(made, corpora, SMALL)
    (made / "notes").rmdir()
    (made / "generate-test.txt").rename(made / ".DS_Store")
    assert prepare(made, corpora, SMALL)


def test_documents_replace_characters_and_the_other_way_round_on_demand(tmp_path, corpora):
    (tmp_path / "text").write_text("the text " * 40)
    characters = {"whole": open_text(tmp_path / "text", None)}, CharacterSettings("en", valid_characters=50)
    assert prepare_characters(tmp_path / "out", *characters)
    for make, given in ((prepare, (corpora, SMALL)), (prepare_characters, characters)):
        with pytest.raises(UserError):
            make(tmp_path / "out", *given)
        assert make(tmp_path / "out", *given, overwrite=True)


def test_sentence_markers_stand_in_source_and_target(tmp_path, corpora, records):
    prepare(tmp_path / "data", corpora, Settings(vocab_size=60, sentence_markers=True))
    folder = DataFolder(tmp_path / "data")
    tokenizer = folder.tokenizer()
    assert f"{SENTENCE_MARKER} 1\n" in folder.dictionary_path.read_text()
    for side, sentences in (("source", 20), ("target", 3)):
        ids = MMapIndexedDataset(folder.indexed("test", side))[0].tolist()
        assert ids.count(tokenizer.marker_id) == sentences and ids[0] == tokenizer.marker_id


@pytest.mark.parametrize(
    "change",
    [
        {"vocab_size": 55},
        {"model_type": "bpe"},
        {"character_coverage": 0.98},
        {"sentences": 50},
        {"sentences": 50, "seed": 2},
    ],
)
def test_every_setting_changes_the_model(tmp_path, corpora, change):
    before = {"vocab_size": 60, "sentences": 50 if "seed" in change else Settings().sentences}
    for folder, settings in (("one", before), ("other", before | change)):
        prepare(tmp_path / folder, corpora, Settings(**settings))
    model = "sentencepiece.model"
    assert contents(tmp_path / "one")[model] != contents(tmp_path / "other")[model]


def test_settings_of_a_vocabulary_exclude_a_tokenizer(tmp_path, corpora):
    with pytest.raises(UserError):
        prepare(tmp_path / "data", corpora, SMALL, tokenizer="x")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("how", ["changed", "locked"])
def test_an_input_that_changes_on_the_way_is_named_in_place_of_the_folder(
    tmp_path, corpora, train_file, monkeypatch, how
):
    train = prepare_module._train

    def refuse(*args):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def change_then_train(*args):
        if how == "changed":
            Path(train_file).write_text(Path(train_file).read_text().replace("paper-3", "paper-x"))
        else:
            monkeypatch.setattr(readers, "open_records", refuse)
        return train(*args)

    monkeypatch.setattr(prepare_module, "_train", change_then_train)
    with refused("train.jsonl"):
        prepare(tmp_path / "data", corpora, SMALL)
    assert not (tmp_path / "data").exists()


def test_a_full_disk_leaves_the_old_folder(made, corpora, monkeypatch):
    whole = contents(made)

    def refuse(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(prepare_module, "write_file", refuse)
    with refused("the old folder is unchanged"):
        prepare(made, corpora, Settings(vocab_size=61), overwrite=True)
    assert contents(made) == whole
    assert [path for path in made.parent.iterdir() if path.name.startswith(".")] == []
