"""BigBird's attention: blocks see their neighbours, the ends of the document, and random blocks."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, NamedTuple

import torch
from torch import Tensor

from pyramidions.base.arguments import CountOrZero, EveryOther
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.full import FullAttention
from pyramidions.nn.functional.attention import received, tiled_attention
from pyramidions.nn.functional.chunking import chunked, pad_to_multiple
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.functional.tiles import Blocks
from pyramidions.nn.marks import Marks
from pyramidions.nn.options import Length, Probability
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext

#: of a random number
_BITS = 32


class BlockLists(NamedTuple):
    """Lists of blocks (Zaheer et al. 2020, section 2); they follow from the number of a document's own blocks.

    A list names no block twice; -1 stands for none.
    """

    window: int  # blocks in the window, an odd number
    ends: int  # blocks at either end of the document
    # blocks that are drawn from all others, without replacement and with equal chances, or all if there are fewer
    random: int
    seed: int  # where they come from

    @property
    def full(self) -> int:
        """The most blocks of a document whose blocks all see each other."""
        return self.window + 2 * self.ends + 2 * self.random

    def of_first(self, count: Tensor, heads: int) -> Tensor:
        """List what the first `full` blocks see: (B,) blocks of each document -> (B, H, `full`, `full`)."""
        rows = torch.arange(self.full, device=count.device)
        lists = self.of_others(count, heads, rows)
        lists = torch.cat([lists, lists.new_full((*lists.shape[:3], self.full - lists.size(3)), -1)], dim=3)
        count = count[:, None, None, None]
        return torch.where(count <= self.full, torch.where(rows < count, rows, -1), lists)

    def of_others(self, count: Tensor, heads: int, rows: Tensor) -> Tensor:
        """List what the blocks ``rows`` (N,) see that are not among the first `full`.

        (B,), blocks of each document -> (B, H, N, 2 `ends` + `window` + `random`); each head has its own random ones.
        """
        count = count[:, None, None, None]
        parts = self._ends(count), self._window(count, rows), self._random(count, heads, rows)
        return torch.cat([part.expand(len(count), heads, len(rows), -1) for part in parts], dim=3)

    def _ends(self, count: Tensor) -> Tensor:
        first = torch.arange(self.ends, device=count.device).expand(*count.shape[:3], -1)
        last = count - 1 - first
        return torch.cat([first.masked_fill(first >= count, -1), last.masked_fill(last < self.ends, -1)], dim=3)

    def _window(self, count: Tensor, rows: Tensor) -> Tensor:
        around = torch.arange(self.window, device=rows.device) - self.window // 2
        blocks = rows[:, None] + around
        return torch.where((blocks >= self.ends) & (blocks < count - self.ends), blocks, -1)

    def _random(self, count: Tensor, heads: int, rows: Tensor) -> Tensor:
        """Draw as Floyd (Bentley and Floyd 1987), so that the work does not grow with the blocks to choose from."""
        rows, side = rows[:, None], self.window // 2
        first = (rows - side).clamp(min=self.ends)
        near = (torch.minimum(rows + side, count - self.ends - 1) - first + 1).clamp(min=0)
        others = (count - 2 * self.ends).clamp(min=0) - near
        drawn = others.clamp(max=self.random)
        key = _hashed(torch.arange(heads, device=rows.device)[:, None, None] + _hashed_seed(self.seed))
        key = _hashed(key + rows)
        drawn_blocks = key.new_full((*others.shape[:1], heads, len(rows), self.random), -1)
        for number in range(self.random):
            # One of the first so many, or the last of them if that is taken.
            last = others - drawn + number
            choice = _hashed(key + number) * (last + 1) >> _BITS
            choice = torch.where((drawn_blocks == choice).any(dim=3, keepdim=True), last, choice)
            drawn_blocks[..., number : number + 1] = torch.where(number < drawn, choice, -1)
        # Counted among the blocks between the ends, without the window.
        blocks = drawn_blocks + self.ends
        return torch.where(drawn_blocks < 0, -1, blocks + near * (blocks >= first))


def _hashed_seed(seed: int) -> int:
    return seed * 0x9E3779B1 % 2**_BITS


def _hashed(x: Tensor) -> Tensor:
    """Map whole numbers to others below 2 ** 32 that look random, the same on all devices."""
    x = x % 2**_BITS
    for _ in range(2):
        # Below 2 ** 59: nothing overflows.
        x = ((x >> 16) ^ x) * 0x45D9F3B % 2**_BITS
    return (x >> 16) ^ x


@ATTENTION.register("bigbird")
class BigBirdAttention(CoreAttention):
    """Attention to a window of blocks, to the ends of a document and to random blocks (Zaheer et al. 2020, section 2).

    The first and the last blocks of a document see all of it, and all of it sees them. Any other block sees its
    neighbours, those ends, and random blocks, which differ from head to head. They follow from ``seed`` and the number
    of the document's own blocks, in training and in evaluation, whatever else is in the batch. No key counts twice. A
    document of ``window_blocks + 2 * global_blocks + 2 * random_blocks`` blocks or fewer, 704 tokens by default, is
    seen whole, as in the published models. Time and memory are linear in the length. It cannot be causal.

    Args:
        block_size: positions in a block, M.
        window_blocks: blocks in the window, the own one in its middle.
        global_blocks: blocks at either end of a document that are global.
        random_blocks: random blocks that a block sees.
        seed: where the random blocks come from, with the number of the layer.
    """

    supports = frozenset({Feature.ITSELF, Feature.RECEIVED, Feature.KEY_BIAS})
    narrow: ClassVar = {"block_size": 2, "window_blocks": 1, "random_blocks": 1}

    def __init__(
        self,
        block_size: Length = 64,
        window_blocks: Annotated[int, EveryOther(1)] = 3,
        global_blocks: CountOrZero = 1,
        random_blocks: CountOrZero = 3,
        seed: int = 1,
        layer: int = 0,
        dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        self.block_size = block_size
        self.lists = BlockLists(window_blocks, global_blocks, random_blocks, seed + layer)
        self.dropout = dropout
        self.everywhere = FullAttention(dropout)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        length = q.size(2)
        if self._sees_everything(length):
            return self.everywhere(q, k, v, context)
        hidden = self._hidden(k, context.padding_mask)
        q, k, v = (self._cut(x) for x in (q, k, v))
        keys, values = k.flatten(0, 2), v.flatten(0, 2)
        mixed = torch.cat(
            [
                tiled_attention(q[:, :, rows].flatten(0, 2), keys, values, seen, dropout=self.dropped)
                # (B H C', M, E) -> (B, H, C', M E)
                .reshape(*q.shape[:2], -1, q.size(3) * q.size(4))
                for rows, seen in self._seen(hidden, q.size(1))
            ],
            dim=2,
        )
        ends = self._ends(hidden)
        if ends is not None:
            from_ends = self.everywhere(_of(ends, q), k.flatten(2, 3), v.flatten(2, 3), LayerContext(hidden.flatten(1)))
            # (B, H, G M, E) -> (B, H, G, M E)
            mixed = ends.put(mixed, from_ends.unflatten(2, (-1, self.block_size)).flatten(3))
        # (B, H, C, M E) -> (B, H, L, E)
        return mixed.reshape(q.shape).flatten(2, 3)[:, :, :length]

    def received(self, q: Tensor, k: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        length = k.size(2)
        if self._sees_everything(length):
            return self.everywhere.received(q, k, context)
        hidden = self._hidden(k, context.padding_mask)
        q, k = self._cut(q), self._cut(k)
        ends = self._ends(hidden)
        # What the ends see is added below.
        left_out = hidden if ends is None else hidden | ends.marked[..., None]
        total = torch.zeros(k.shape[:4], dtype=torch.float32, device=k.device)
        for rows, seen in self._seen(hidden, q.size(1)):
            # (B, C, M) -> (B H C', M)
            without = left_out[:, None, rows].expand(-1, q.size(1), -1, -1).flatten(0, 2)
            (weights,) = received(q[:, :, rows].flatten(0, 2), k.flatten(0, 2), seen, without[..., None])
            total += weights.view_as(total)
        weights = total.sum(dim=1).flatten(1)
        if ends is not None:
            without = ends.absent[..., None] | hidden.gather(
                1, ends.positions[..., None].expand(-1, -1, hidden.size(2))
            )
            weights += self.everywhere.received(
                _of(ends, q), k.flatten(2, 3), LayerContext(hidden.flatten(1)), without.flatten(1)
            )
        return weights.masked_fill(hidden.flatten(1), 0.0)[:, :length]

    def _sees_everything(self, length: int) -> bool:
        return length <= self.lists.full * self.block_size

    def _cut(self, x: Tensor) -> Tensor:
        # (B, H, L, E) -> (B, H, C, M, E); of one piece, so that the backward pass keeps no further copies
        return pad_to_multiple(x, self.block_size, dim=2).contiguous().unflatten(2, (-1, self.block_size))

    def _hidden(self, k: Tensor, padding_mask: Tensor | None) -> Tensor:
        # (B, L) -> (B, C, M)
        return chunked(padding_of(k, padding_mask), self.block_size, dim=1, value=True)

    def _ends(self, hidden: Tensor) -> Marks | None:
        """Return which blocks of each document see everything."""
        if not self.lists.ends:
            return None
        numbers, count = torch.arange(hidden.size(1), device=hidden.device), _blocks_of(hidden)[:, None]
        marked = (numbers < count) & ((numbers < self.lists.ends) | (numbers >= count - self.lists.ends))
        return Marks(marked, 2 * self.lists.ends)

    def _seen(self, hidden: Tensor, heads: int) -> Iterator[tuple[slice, Blocks]]:
        """Yield which keys the first blocks see, perhaps all of a short document, then which the others see."""
        count, blocks, first = _blocks_of(hidden), hidden.size(1), self.lists.full
        others = torch.arange(first, blocks, device=hidden.device)
        yield slice(0, first), _seen(self.lists.of_first(count, heads), hidden)
        yield slice(first, blocks), _seen(self.lists.of_others(count, heads, others), hidden)


def _blocks_of(hidden: Tensor) -> Tensor:
    """Return how many blocks each document has, up to its last position: (B, C, M) -> (B,)."""
    numbers = torch.arange(1, hidden.size(1) + 1, device=hidden.device)
    return (~hidden).any(dim=2).long().mul(numbers).amax(dim=1).clamp(min=1)


def _seen(lists: Tensor, hidden: Tensor) -> Blocks:
    """Return blocks by their place among those of all documents and heads: (B, H, C', S) -> (B H C', S)."""
    batch, heads = lists.shape[:2]
    document = torch.arange(batch, device=lists.device)[:, None, None, None]
    head = torch.arange(heads, device=lists.device)[:, None, None]
    blocks = lists.clamp(min=0)
    # (B, H, C', S, M) -> (B H C', S M)
    allowed = (~hidden[document, blocks] & (lists >= 0)[..., None]).flatten(3).flatten(0, 2)
    # Rows that see nothing are padding.
    allowed = allowed | ~allowed.any(dim=1, keepdim=True)
    return Blocks(((document * heads + head) * hidden.size(1) + blocks).flatten(0, 2), allowed)


def _of(ends: Marks, q: Tensor) -> Tensor:
    # (B, H, C, M, E) -> (B, H, G M, E)
    return ends.take(q.flatten(3)).unflatten(3, q.shape[3:]).flatten(2, 3)
