"""The share of all inputs that one of several runs reads, and blocks of inputs."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyramidions.errors import UserError

if TYPE_CHECKING:
    from pyramidions.inference.documents import InputText

#: Most shards; `join` opens all of them at once.
MOST = 1000
_FORM = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")


class Share(NamedTuple):
    """Every ``of``-th block of inputs, beginning with block number ``shard``.

    Whole blocks belong to a share because documents of a block are computed together: what one shares a batch with,
    and so the last digit of its score, is the same however many runs there are.

    Attributes:
        shard: number of the share, from 1.
        of: number of shares.
    """

    shard: int
    of: int

    @classmethod
    def parse(cls, text: str) -> "Share":
        """Return the share that 3/16 names.

        Raises:
            UserError: it has another form, or there is no such share.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise UserError(
                f"`shard` must be a number, a slash and how many shards there are, as 3/16, but is {text!r}."
            )
        share = cls(*map(int, found.groups()))
        if not 1 <= share.of <= MOST:
            raise UserError(f"`shard` must be one of 1 to {MOST:,} shards, but is {text}.")
        if not 1 <= share.shard <= share.of:
            raise UserError(f"`shard` must be from 1/{share.of} to {share.of}/{share.of}, but is {text}.")
        return share

    def holds(self, block: int) -> bool:
        """Whether a block, numbered from 1, belongs to this share."""
        return (block - self.shard) % self.of == 0

    def __str__(self) -> str:
        """Name it as --shard does."""
        return f"{self.shard}/{self.of}"


class Turns:
    """Numbers inputs from 1: files, and lines of .jsonl files.

    Args:
        share: of the inputs that are read; None for all.
        size: inputs of a block.
        done: number of the last block that was read before; 0 for none.

    Attributes:
        number: of the last input.
    """

    def __init__(self, share: Share | None = None, size: int = 1, done: int = 0) -> None:
        self.number = 0
        self._share = share
        self._size = size
        self._done = done

    def is_next(self) -> bool:
        """Count an input; return whether it is to be read."""
        self.number += 1
        if self._share is None:
            return True
        block = block_of(self.number, self._size)
        return block > self._done and self._share.holds(block)


def block_of(number: int, size: int) -> int:
    """Return the number of the block of ``size`` inputs, from 1, that input ``number`` is in."""
    return (number - 1) // size + 1


def blocks(documents: Iterable["InputText"], size: int) -> Iterator[tuple[int, Iterator["InputText"]]]:
    """Cut documents into blocks by their numbers, without reading them before they are asked for.

    Args:
        documents: in the order of their numbers, of which some may be missing.
        size: numbers of a block.

    Yields:
        Number and documents of each block that has some; they must be read before the next block is asked for.
    """
    source = iter(documents)
    following = next(source, None)

    def rest(number: int) -> Iterator["InputText"]:
        nonlocal following
        while following is not None and block_of(following.number, size) == number:
            document, following = following, None
            yield document
            # Behind the last number of a block, nothing has to be read to know that it ends.
            if document.number % size == 0:
                return
            following = next(source, None)

    while following is not None or (following := next(source, None)) is not None:
        number = block_of(following.number, size)
        yield number, rest(number)
