import numpy as np
import pytest

from pyramidions.data.folder import DataFolder
from pyramidions.data.growing import NOTHING, GrowingFile
from pyramidions.data.resume import START, load_mark, save_mark
from pyramidions.data.vocabulary import Settings, train_tokenizer

SENTENCES = ["the quick brown fox jumps over the lazy dog", "pack my box with five dozen liquor jugs"] * 5


@pytest.fixture
def split_with_mark(tmp_path):
    folder = DataFolder(tmp_path)
    model = train_tokenizer(SENTENCES, Settings(36))
    with GrowingFile(folder.references_path("train")) as references:
        references.write(b"{}\n" * 3)
    for side in ("source", "target"):
        folder.tokens_path("train", side).touch()
    lengths = [np.array(numbers) for numbers in ([4, 5, 6], [1, 2, 3], [7, 8, 9])]
    mark = START._replace(
        references=references.extent,
        **dict(zip(("source_lengths", "target_lengths", "target_words"), lengths, strict=True)),
    )
    save_mark(folder, "train", model, mark)
    return folder, model, mark


def test_a_mark_reads_back_as_it_was_saved(split_with_mark):
    folder, model, mark = split_with_mark
    loaded = load_mark(folder, "train", model)
    assert loaded[:4] == (mark.sha256, NOTHING, NOTHING, mark.references)
    assert [array.tolist() for array in loaded[4:]] == [[4, 5, 6], [1, 2, 3], [7, 8, 9]]
    assert loaded.documents == 3


def test_a_mark_with_any_byte_changed_or_cut_off_counts_as_missing(split_with_mark):
    folder, model, _ = split_with_mark
    (path,) = folder.path.glob(".*")
    data = path.read_bytes()
    for place in range(0, len(data), 5):
        for damaged in (data[:place], data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]):
            path.write_bytes(damaged)
            assert load_mark(folder, "train", model) is START


def test_a_mark_made_with_another_vocabulary_counts_as_missing(split_with_mark):
    folder, _, _ = split_with_mark
    other = train_tokenizer(SENTENCES, Settings(35))
    assert load_mark(folder, "train", other) is START
