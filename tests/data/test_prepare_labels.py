"""`prepare --labels`: which sentences of a document its summary is made of."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest
from folders import contents
from refusals import refused

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder
from pyramidions.data.indexed import IndexedReader
from pyramidions.data.labels import labelled
from pyramidions.data.prepare import prepare
from pyramidions.data.readers import Corpus, Document
from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.extract.oracle import oracle
from pyramidions.text.outline import outline
from pyramidions.text.tokenizer import EOS, Tokenizer

SMALL = Settings(vocab_size=60)
WORDS = "One two three. Four five six. Seven are good. # Methods # Results one four seven methods results"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([WORDS] * 5, Settings(33, sentence_markers=True))


@pytest.fixture
def labelled_folder(tmp_path: Path, corpora: dict[str, Corpus]) -> DataFolder:
    prepare(tmp_path / "labelled" / "data", corpora, SMALL, labels=True)
    return DataFolder(tmp_path / "labelled" / "data")


def test_each_heading_and_sentence_has_a_label(tokenizer: Tokenizer) -> None:
    text = "# Methods\n\nOne two three. Four five six.\n\n# Results\n\nSeven are good."
    source = labelled(Document("a", text, "six four five"), tokenizer)
    # Heading, sentence, chosen, heading, sentence.
    assert source.labels.tolist() == [0, 1, 2, 0, 1]
    assert source.ids.count(tokenizer.marker_id) == 5
    assert tokenizer.decode(source.ids) == "Methods One two three. Four five six. Results Seven are good."


@pytest.mark.parametrize(
    ("text", "summary", "labels"),
    [
        ("# Methods\n\n# Results", "methods", [0, 0]),
        ("One two. Three four.", "seven", [1, 1]),
        ("One two.", "two", [2]),
        ("# #", "two", [1]),
    ],
)
def test_odd_documents_are_labelled_as_they_are(
    tokenizer: Tokenizer, text: str, summary: str, labels: list[int]
) -> None:
    source = labelled(Document("a", text, summary), tokenizer)
    assert source.labels.tolist() == labels
    assert source.ids.count(tokenizer.marker_id) == len(labels)


def test_the_labels_of_a_folder_are_the_oracles(labelled_folder: DataFolder, records: list[dict[str, str]]) -> None:
    tokenizer = labelled_folder.tokenizer()
    sources, labels = (IndexedReader(labelled_folder.prefix("test", side)) for side in ("source", "labels"))
    assert len(labels) == 10
    for number, record in enumerate(records[30:]):
        units = outline(record["article"]).units
        expected = np.ones(len(units), int)
        expected[oracle([unit.text for unit in units], record["abstract"])] = 2
        assert labels[number] == expected.tolist()
        assert sources[number] == [*tokenizer.encode_units([unit.text for unit in units]), EOS]


def test_the_manifest_counts_sentences_and_chosen_ones(labelled_folder: DataFolder) -> None:
    about = labelled_folder.manifest["splits"]["train"]
    labels = IndexedReader(labelled_folder.prefix("train", "labels"))
    chosen = [labels[i].count(2) for i in range(30)]
    assert about["chosen_sentences"]["mean"] == round(sum(chosen) / 30, 2)
    assert about["chosen_sentences"]["max"] == max(chosen) > 1
    assert about["sentences"]["total"] == sum(len(labels[i]) for i in range(30))
    assert labelled_folder.manifest["settings"]["labels"] is True
    assert labelled_folder.manifest["settings"]["sentence_markers"] is True
    for name in ("train.labels.bin", "train.labels.idx"):
        assert name in labelled_folder.manifest["files"] and name in labelled_folder.manifest["sizes"]


def test_without_labels_the_folder_says_nothing_of_them(whole: dict[str, bytes]) -> None:
    assert not any("labels" in name for name in whole)
    assert b"labels" not in whole["manifest.json"] and b"chosen" not in whole["manifest.json"]


def test_a_folder_without_labels_is_no_folder_with_labels(out: Path, corpora: dict[str, Corpus]) -> None:
    prepare(out, corpora, Settings(vocab_size=60, sentence_markers=True))
    with pytest.raises(UserError):
        prepare(out, corpora, SMALL, labels=True)
    assert prepare(out, corpora, SMALL, labels=True, overwrite=True)
    assert not prepare(out, corpora, SMALL, labels=True)


def test_any_number_of_workers_and_interruptions_make_the_same_bytes(
    out: Path,
    corpora: dict[str, Corpus],
    labelled_folder: DataFolder,
    interrupted: Callable[..., AbstractContextManager[None]],
) -> None:
    for at in (9, 33):
        with interrupted(at):
            prepare(out, corpora, SMALL, labels=True)
    assert prepare(out, corpora, SMALL, labels=True, workers=2)
    assert contents(out) == contents(labelled_folder.path)


def test_a_tokenizer_to_reuse_must_have_the_marker(
    out: Path, corpora: dict[str, Corpus], whole: dict[str, bytes], tmp_path: Path, labelled_folder: DataFolder
) -> None:
    with pytest.raises(UserError):
        prepare(out, corpora, tokenizer=tmp_path / "whole" / "data" / "sentencepiece.model", labels=True)
    assert not out.exists()
    assert prepare(out, corpora, tokenizer=labelled_folder.sentencepiece_path, labels=True)
    for split in ("train", "test"):
        name = f"{split}.labels.bin"
        assert (out / name).read_bytes() == (labelled_folder.path / name).read_bytes()


def test_damaged_labels_are_named(labelled_folder: DataFolder) -> None:
    path = labelled_folder.tokens_path("test", "labels")
    content = path.read_bytes()
    path.write_bytes(content[:-2] + b"\0\0")
    labelled_folder.verify("test")
    with refused("test.labels.bin"):
        labelled_folder.verify("test", hashes=True)
    path.write_bytes(content[:2])
    with refused("test.labels.bin"):
        labelled_folder.verify("test")
    path.unlink()
    with refused("test.labels.bin"):
        labelled_folder.verify("test")
