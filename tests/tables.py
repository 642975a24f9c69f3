"""Tests over tables: one test, whose failures name the rows."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

Test = Callable[..., None]
#: Of a configuration: how many tests a push runs, with each row of their tables counted by itself.
ROWS = pytest.StashKey[int]()


def rows_of(item: pytest.Item) -> int:
    """Return the number of rows of a test's tables, or 1."""
    _, rows = getattr(getattr(item, "function", None), "over", (None, [{}]))
    return len(rows)


def for_each(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test with each row of a table, as `parametrize` does, but as one test, with its fixtures made once.

    Two tables are a product.

    Args:
        names: the arguments of the test that a row gives.
        rows: a tuple for each call of the test, or a value where there is one name.
    """
    if isinstance(names, str):
        names, rows = (names,), ((row,) for row in rows)
    table = [dict(zip(names, row, strict=True)) for row in rows]

    def over_table(test: Test) -> Test:
        inner, more = getattr(test, "over", (test, [{}]))
        product = [{**row, **other} for row in table for other in more]

        @wraps(test)
        def run(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for row in product:
                with subtests.test(**row):
                    inner(**fixtures, **row)

        signature = inspect.signature(inner)
        of_rows = inspect.Parameter("subtests", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        asked = [of_rows, *(parameter for name, parameter in signature.parameters.items() if name not in product[0])]
        run.__signature__ = signature.replace(parameters=asked)  # type: ignore[attr-defined]
        run.over = inner, product  # type: ignore[attr-defined]
        return run

    return over_table
