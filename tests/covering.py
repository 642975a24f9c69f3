"""Few of many combinations that cover all pairs of choices; `pytest --all` runs the whole product."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations

import pytest

#: Marks what only `--all` runs.
NIGHTLY = "nightly"
#: Of a configuration: how many tests a run has, with each row of their tables.
ROWS = pytest.StashKey[int]()
Choice = tuple[int, Hashable]


def covering(cases: Iterable[Sequence[Hashable]], strength: int = 2) -> list[object]:
    """Return all cases for `parametrize`, marked where the others before cover their pairs of choices.

    Args:
        cases: combinations, one choice on each axis.
        strength: how many axes are covered together; 1 takes each choice once, 2 each pair of choices.
    """
    cases = list(cases)
    wanted = [frozenset(combinations(enumerate(case), strength)) for case in cases]
    open_, chosen = frozenset[tuple[Choice, ...]]().union(*wanted), set[int]()
    while open_:
        # Greedily: the first of those that cover most of what is open.
        best = max(range(len(cases)), key=lambda number: len(wanted[number] & open_))
        chosen.add(best)
        open_ -= wanted[best]
    mark = getattr(pytest.mark, NIGHTLY)
    return [pytest.param(*case, marks=() if n in chosen else mark) for n, case in enumerate(cases)]
