import numpy as np
import pytest

from pyramidions.data.folder import DataFolder
from pyramidions.data.shards import Shard, Shards
from pyramidions.data.vocabulary import Settings, train_tokenizer
from pyramidions.text.tokenizer import Tokenizer

SENTENCES = ["the quick brown fox jumps over the lazy dog", "pack my box with five dozen liquor jugs"] * 5


@pytest.fixture(scope="module")
def model() -> Tokenizer:
    return train_tokenizer(SENTENCES, Settings(36))


@pytest.fixture
def folder(tmp_path, model) -> DataFolder:
    """Holds two shards."""
    folder = DataFolder(tmp_path)
    shards = Shards(folder, "train", model)
    shards.append(shard("abc", 3))
    shards.append(shard("def", 2))
    return folder


def shard(sha256: str, documents: int) -> Shard:
    numbers = np.arange(1, documents + 1)
    return Shard(sha256, *([numbers] * 5), np.frombuffer(b"{}\n" * documents, np.uint8))


def test_shards_read_back_as_they_were_saved(folder, model):
    shards = Shards(folder, "train", model)
    assert (shards.documents, shards.sha256) == (5, "def")
    assert [[str(field) for field in found] for found in shards] == [
        [str(field) for field in each] for each in (shard("abc", 3), shard("def", 2))
    ]
    assert Shards(folder, "test", model).documents == 0


def test_a_shard_with_any_byte_changed_or_cut_off_counts_as_missing(folder, model):
    path = folder.path / ".train.1.shard"
    data = path.read_bytes()
    for place in range(0, len(data), 5):
        for damaged in (data[:place], data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]):
            path.write_bytes(damaged)
            assert Shards(folder, "train", model).documents == 3


def test_what_comes_after_a_missing_shard_is_not_taken(folder, model):
    (folder.path / ".train.0.shard").unlink()
    assert Shards(folder, "train", model).documents == 0


def test_shards_made_with_another_vocabulary_count_as_missing(folder):
    other = train_tokenizer(SENTENCES, Settings(35))
    assert Shards(folder, "train", other).documents == 0
