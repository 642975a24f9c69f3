import numpy as np
import pytest
from fairseq.data.indexed_dataset import MMapIndexedDataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyramidions.data.indexed import IndexedReader, IndexedWriter


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(items=st.lists(st.lists(st.integers(0, 65498), min_size=1, max_size=20), min_size=1, max_size=10))
def test_fairseq_reads_back_what_was_written(tmp_path, items):
    with IndexedWriter(tmp_path / "x", 65499) as writer:
        for item in items:
            writer.add(item)
    dataset = MMapIndexedDataset(str(tmp_path / "x"))
    assert [dataset[i].tolist() for i in range(len(dataset))] == items
    assert dataset.sizes.tolist() == [len(item) for item in items] == writer.lengths.tolist()
    reader = IndexedReader(tmp_path / "x")
    assert [reader[i] for i in range(len(reader))] == items


@pytest.mark.parametrize(("vocab_size", "size"), [(65499, 2), (65500, 4)])
def test_an_id_takes_two_bytes_where_the_vocabulary_fits(tmp_path, vocab_size, size):
    with IndexedWriter(tmp_path / "x", vocab_size) as writer:
        writer.add([vocab_size - 1])
    assert (tmp_path / "x.bin").stat().st_size == size
    assert MMapIndexedDataset(str(tmp_path / "x"))[0].tolist() == [vocab_size - 1]


def test_an_error_leaves_no_index(tmp_path):
    with pytest.raises(KeyError), IndexedWriter(tmp_path / "x", 100) as writer:
        writer.add(np.array([1, 2]))
        raise KeyError
    assert not (tmp_path / "x.idx").exists()


def test_many_items_at_once_are_as_one_by_one(tmp_path):
    with IndexedWriter(tmp_path / "x", 100) as writer:
        writer.add([1, 2])
        writer.extend([3, 4, 5], [1, 2])
    reader = IndexedReader(tmp_path / "x")
    assert [reader[i] for i in range(len(reader))] == [[1, 2], [3], [4, 5]]
