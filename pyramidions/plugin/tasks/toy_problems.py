"""Toy problems on decimal numbers, whose answers follow from their inputs."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

BASE = 10
SYMBOLS = (*map(str, range(BASE)), "+")
_PLUS = SYMBOLS.index("+")


class Pair(NamedTuple):
    """An input and its answer, as indices of `SYMBOLS`."""

    source: list[int]
    target: list[int]


Problem = Callable[[int, np.random.Generator], Pair]


def copying(length: int, random: np.random.Generator) -> Pair:
    """Return ``length`` random digits, and the same digits."""
    digits: list[int] = random.integers(BASE, size=length).tolist()
    return Pair(digits, digits)


def addition(length: int, random: np.random.Generator) -> Pair:
    """Return two random numbers with a plus in between, ``length`` symbols in all, and their sum.

    The least significant digit comes first. Numbers begin with any digit, and the sum has one digit more than the
    longer of them, zero where nothing is carried.

    Raises:
        ValueError: fewer than 3 symbols.
    """
    if length < 3:
        raise ValueError(f"`length` must be at least 3, but is {length}.")
    first = int(random.integers(1, length - 1))
    numbers = [random.integers(BASE, size=size).tolist() for size in (first, length - 1 - first)]
    total, carried = [], 0
    for place in range(max(map(len, numbers))):
        carried += sum(number[place] for number in numbers if place < len(number))
        total.append(carried % BASE)
        carried //= BASE
    return Pair([*numbers[0], _PLUS, *numbers[1]], [*total, carried])


PROBLEMS: dict[str, Problem] = {"copy": copying, "addition": addition}
#: the symbols of the shortest input of each
SHORTEST = {"copy": 1, "addition": 3}
