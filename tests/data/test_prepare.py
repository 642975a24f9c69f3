import errno
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from folders import contents
from tables import for_each

from pyramidions.base.errors import UserError
from pyramidions.data import encode as encode_module
from pyramidions.data import prepare as prepare_module
from pyramidions.data import readers
from pyramidions.data.characters import CharacterSettings, prepare_characters
from pyramidions.data.folder import DataFolder
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus, Document
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


def test_the_same_inputs_and_settings_are_not_prepared_again(made, corpora):
    before = {path: path.stat().st_mtime_ns for path in made.iterdir()}
    assert not prepare(made, corpora, SMALL)
    assert {path: path.stat().st_mtime_ns for path in made.iterdir()} == before


def test_a_damaged_folder_is_repaired(made, corpora):
    whole = contents(made)
    (made / "test.source.bin").write_bytes(b"x")
    (made / "dict.txt").unlink()
    assert prepare(made, corpora, SMALL)
    assert contents(made) == whole


def test_other_documents_or_settings_replace_a_folder_only_on_demand(made, corpora, train_file):
    whole = contents(made)
    for wanted in (({"train": Corpus(train_file)}, SMALL), (corpora, Settings(vocab_size=61))):
        with pytest.raises(UserError, match=r"data holds other documents or settings; give --overwrite to replace"):
            prepare(made, *wanted)
        assert contents(made) == whole
    assert prepare(made, corpora, Settings(vocab_size=61), overwrite=True)
    assert DataFolder(made).tokenizer().vocab_size == 61
    assert [path for path in made.parent.iterdir() if path.name.startswith(".")] == []


def test_foreign_files_are_never_replaced(tmp_path, corpora):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("x")
    with pytest.raises(UserError, match=r"home holds files that `pyramidions prepare` did not make"):
        prepare(tmp_path / "home", corpora, SMALL, overwrite=True)
    with pytest.raises(UserError, match=r"thesis.txt must be a folder, but is a file"):
        prepare(tmp_path / "home" / "thesis.txt", corpora, SMALL, overwrite=True)
    with pytest.raises(UserError, match=r"thesis.txt/x must lie in a folder, but .*thesis.txt is a file\.$"):
        prepare(tmp_path / "home" / "thesis.txt" / "x", corpora, SMALL)


def test_files_that_others_put_into_a_folder_are_never_lost(made, corpora):
    (made / "generate-test.txt").write_text("H-0")
    assert not prepare(made, corpora, SMALL)
    (made / "train.source.idx").unlink()
    whole = contents(made)
    for overwrite in (False, True):
        with pytest.raises(UserError, match=r"data must be replaced, but holds generate-test\.txt, which .* not make"):
            prepare(made, corpora, SMALL, overwrite=overwrite)
        assert contents(made) == whole
    (made / "notes").mkdir()
    with pytest.raises(UserError, match=r"holds generate-test\.txt and 1 more, which"):
        prepare(made, corpora, SMALL)
    (made / "notes").rmdir()
    (made / "generate-test.txt").rename(made / ".DS_Store")
    assert prepare(made, corpora, SMALL)


@for_each("manifest", ['{"name": "an extension"}', '{"files"', "[]"])
def test_a_folder_whose_manifest_says_nothing_is_never_replaced(tmp_path, corpora, manifest):
    (tmp_path / "manifest.json").write_text(manifest)
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(UserError, match=r"its manifest\.json is damaged or of another program; remove the folder, or"):
        prepare(tmp_path, corpora, SMALL, overwrite=True)
    assert (tmp_path / "thesis.txt").read_text() == "x"


def test_documents_replace_characters_and_the_other_way_round_on_demand(tmp_path, corpora):
    (tmp_path / "text").write_text("the text " * 40)
    characters = {"whole": open_text(tmp_path / "text", None)}, CharacterSettings("en", valid_characters=50)
    assert prepare_characters(tmp_path / "out", *characters)
    with pytest.raises(UserError, match="give --overwrite to replace it"):
        prepare(tmp_path / "out", corpora, SMALL)
    assert prepare(tmp_path / "out", corpora, SMALL, overwrite=True)
    with pytest.raises(UserError, match="give --overwrite to replace it"):
        prepare_characters(tmp_path / "out", *characters)
    assert prepare_characters(tmp_path / "out", *characters, overwrite=True)


def test_a_tokenizer_is_reused(made, tmp_path, test_file):
    other = tmp_path / "other"
    prepare(other, {"test": Corpus(test_file)}, tokenizer=made / "sentencepiece.model")
    for name in ("sentencepiece.model", "dict.txt", "test.source.bin"):
        assert contents(other)[name] == contents(made)[name]
    assert not prepare(other, {"test": Corpus(test_file)}, tokenizer=made / "sentencepiece.model")


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
    [{"vocab_size": 55}, {"model_type": "bpe"}, {"character_coverage": 0.98}, {"sentences": 50}],
)
def test_every_setting_changes_the_model(made, tmp_path, corpora, change):
    prepare(tmp_path / "other", corpora, Settings(**{"vocab_size": 60, **change}))
    assert contents(tmp_path / "other")["sentencepiece.model"] != contents(made)["sentencepiece.model"]


def test_the_seed_draws_other_sentences(tmp_path, corpora):
    for seed in (1, 2):
        prepare(tmp_path / str(seed), corpora, Settings(vocab_size=55, sentences=50, seed=seed))
    assert contents(tmp_path / "1")["sentencepiece.model"] != contents(tmp_path / "2")["sentencepiece.model"]


def test_a_vocabulary_larger_than_the_corpus_allows_leaves_nothing(tmp_path, corpora):
    with pytest.raises(UserError, match=r"`vocab_size` must be at most \d+ for a corpus of this size, but is 32768"):
        prepare(tmp_path / "data", corpora)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.jsonl", "train.jsonl"]


def test_something_to_prepare_must_be_given(tmp_path, test_file):
    with pytest.raises(UserError, match="At least one of train, valid and test must be given"):
        prepare(tmp_path / "data", {})
    with pytest.raises(UserError, match="Settings of a vocabulary and a tokenizer to reuse exclude each other"):
        prepare(tmp_path / "data", {"test": Corpus(test_file)}, SMALL, tokenizer="x")
    with pytest.raises(UserError, match="A vocabulary is trained on the train split"):
        prepare(tmp_path / "data", {"test": Corpus(test_file)})


def test_a_bad_document_stops_the_run_before_anything_is_made(tmp_path, corpora, write_lines):
    corpora["test"] = Corpus(write_lines("bad.jsonl", [{"id": "a"}]), "test")
    with pytest.raises(UserError, match=r"bad\.jsonl, line 1: lacks the field 'article'"):
        prepare(tmp_path / "data", corpora, SMALL)
    assert not (tmp_path / "data").exists()


def test_an_input_that_changes_on_the_way_is_noticed(tmp_path, train_file, monkeypatch):
    train = prepare_module._train

    def append_then_train(*args):
        with open(train_file, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(json.dumps({"id": "late", "article": "ba ban.", "abstract": "ba."}) + "\n")
        return train(*args)

    monkeypatch.setattr(prepare_module, "_train", append_then_train)
    with pytest.raises(UserError, match=r"train\.jsonl changed while it was being read\."):
        prepare(tmp_path / "data", {"train": Corpus(train_file)}, SMALL)
    assert not (tmp_path / "data").exists()


def test_an_input_that_can_no_longer_be_read_is_named_in_place_of_the_folder(tmp_path, corpora, monkeypatch):
    train = prepare_module._train

    def lock_then_train(*args):
        def refuse(*args):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr(readers, "open_records", refuse)
        return train(*args)

    monkeypatch.setattr(prepare_module, "_train", lock_then_train)
    with pytest.raises(UserError, match=r"train\.jsonl cannot be read: Permission denied\.$"):
        prepare(tmp_path / "data", corpora, SMALL)


def test_workers_send_back_ids_and_no_texts(made, records):
    document = Document("1", records[0]["article"], records[0]["abstract"])
    (encoded,) = encode_module._encode_chunk(DataFolder(made).tokenizer(), False, None, None, [document])
    assert not any(isinstance(value, (str, Document)) for value in encoded)


def test_a_full_disk_leaves_the_old_folder(made, corpora, monkeypatch):
    whole = contents(made)

    def refuse(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(prepare_module, "write_file", refuse)
    with pytest.raises(UserError, match=r"data failed \(No space left on device\); the old folder is unchanged\."):
        prepare(made, corpora, Settings(vocab_size=61), overwrite=True)
    assert contents(made) == whole
    assert [path for path in made.parent.iterdir() if path.name.startswith(".")] == []


def test_a_run_killed_in_the_middle_leaves_the_old_folder_and_the_next_one_cleans_up(made, corpora, train_file):
    whole = contents(made)
    script = f"""
        import time
        from pyramidions.data import prepare as p
        from pyramidions.data.readers import Corpus
        def wait(*args):
            print("almost", flush=True)
            time.sleep(60)
        p.write_manifest = wait
        p.prepare({str(made)!r}, {{"train": Corpus({train_file!r})}}, p.Settings(vocab_size=61), overwrite=True)
    """
    run = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert b"almost" in run.stdout.readline()
    run.send_signal(signal.SIGKILL)
    run.wait()
    run.stdout.close()
    assert (made.parent / ".data.partial" / "train.source.idx").exists()
    assert contents(made) == whole
    assert prepare(made, corpora, Settings(vocab_size=61), overwrite=True)
    assert DataFolder(made).tokenizer().vocab_size == 61
    assert [path for path in made.parent.iterdir() if path.name.startswith(".")] == []
