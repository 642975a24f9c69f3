"""One test over a table."""

import pytest

PROGRAM = """
import pytest
from tables import for_each


@for_each("length", [1, 2])
@pytest.mark.parametrize("kind", ["even", "odd"])
@for_each(("text", "found"), [("a", 1), ("b", 2)])
def test_a(kind, length, text, found, tmp_path):
    assert (length, text) != (2, "b") and len(text) == 1
    assert found in (1, 2) and tmp_path.exists()
"""
pytest_plugins = ["pytester"]


def test_each_row_is_run_and_named_where_it_fails(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PROGRAM)
    lines = pytester.runpytest("-p", "no:cacheprovider").outlines
    assert sum(line.startswith("SUBFAILED(length=2, text='b', found=2) ") for line in lines) == 2
    assert sum(line.startswith("FAILED ") for line in lines) == 2
