import pytest

from pyramidions.base.errors import UserError
from pyramidions.data.folder import DataFolder, Reference


def test_references_are_read_in_order(tmp_path):
    (tmp_path / "test.references.jsonl").write_text(
        '{"id": "b", "summary": "one\\ntwo"}\n{"id": 1, "summary": "\\u2028"}\n'
    )
    assert DataFolder(tmp_path).references("test") == [Reference("b", "one\ntwo"), Reference("1", "\u2028")]


@pytest.mark.parametrize("line", ["x", "[]", '{"id": "a"}', '{"id": "a", "summary": 3}'])
def test_a_bad_reference_is_named_by_its_line(tmp_path, line):
    (tmp_path / "test.references.jsonl").write_text('{"id": "a", "summary": "x"}\n' + line + "\n")
    with pytest.raises(UserError):
        DataFolder(tmp_path).references("test")
