"""The role of a sublayer's function, and what it reads: self-attention, cross-attention or a feed-forward part."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pyramidions.nn.marks import Marks
from pyramidions.nn.provenance import Origins
from pyramidions.nn.units import Units


class Memory(NamedTuple):
    """Vectors that a cross-attention reads."""

    x: Tensor  # (B, K, D)
    padding_mask: Tensor | None = None  # (B, K), True at padding, or its `as_bias`, or None if there is no padding
    origins: Origins | None = None  # which tokens the vectors are made of; None if nothing reads that
    key_bias: Tensor | None = None  # (B, K), what is added to the scores of each vector; None for nothing
    # (B, K), the number of the unit of the text that each vector stands in, -1 at padding; None if unknown
    unit: Tensor | None = None

    def select(self, documents: Tensor) -> "Memory":
        """Return the memory of ``documents`` (B',), in that order."""
        origins = None if self.origins is None else self.origins.select(documents)
        mask, bias, unit = (
            None if each is None else each.index_select(0, documents)
            for each in (self.padding_mask, self.key_bias, self.unit)
        )
        return Memory(self.x.index_select(0, documents), mask, origins, bias, unit)


class Memories(NamedTuple):
    """What the hypotheses of a batch read: a document's share one row of each memory."""

    each: tuple[Memory, ...]  # one for each place that cross-attentions read
    width: int = 1  # hypotheses of a document, W. They are consecutive rows of what a decoder reads.

    def reorder(self, order: Tensor, width: int) -> "Memories":
        """Return what the hypotheses ``order`` (B'W',) read, ``width`` W' of a document; see `staying`."""
        documents = staying(order, width, self.each[0].x.size(0), self.width)
        each = self.each if documents is None else tuple(memory.select(documents) for memory in self.each)
        return Memories(each, width)


def staying(order: Tensor, width: int, documents: int, before: int) -> Tensor | None:
    """Return the documents (B',) that a search keeps, or None if all B, with W hypotheses ``before``, stay in place.

    Hypotheses ``order`` (B'W',) go on. Those of a document stand together, and documents stay in their order. So it is
    read off the number of hypotheses: the host waits for no GPU, and most steps copy no memory.
    """
    return None if len(order) == documents * width else order[::width] // before


class Lineage:
    """Tracks which of a document's written tokens belong to the past of each hypothesis.

    The W hypotheses of a document are consecutive rows. The S tokens that any of them ever wrote are kept once, in the
    order in which they were written. When descendants of other hypotheses replace some, no token moves. A memory that a
    decoder reads in front of them (`begin`) counts as written by all.
    """

    def __init__(self) -> None:
        #: (B, W, S), True where a token belongs to a hypothesis; None where nothing was written yet
        self.belongs: Tensor | None = None
        self._alone = True  # all that stands before a token belongs to its past
        self._own = torch.zeros(0, 0, dtype=torch.bool)  # (W, W), as it was used last

    def begin(self, memory: Memory, width: int) -> None:
        """Put a memory, without its padding, before the first token of ``width`` hypotheses of a document."""
        x, padding_mask = memory.x, memory.padding_mask
        real = torch.ones_like(x[..., 0], dtype=torch.bool) if padding_mask is None else ~padding_mask
        self.belongs = real[:, None].expand(-1, width, -1)
        self._alone = padding_mask is None

    @property
    def length(self) -> int:
        """Written tokens of each document."""
        return 0 if self.belongs is None else self.belongs.size(2)

    def extend(
        self, documents: int, width: int, tokens: int, device: torch.device, padding_mask: Tensor | None = None
    ) -> Tensor | None:
        """Add ``tokens`` T new positions to each of ``width`` W hypotheses; return what these must not see, or None.

        (B, WT, S + WT), True at other hypotheses' tokens, at later tokens of the same one, and at new positions of
        ``padding_mask`` (BW, T), which belong to nobody.
        """
        self._alone = self._alone and width == 1 and padding_mask is None
        if self.belongs is None:
            self.belongs = torch.zeros(documents, width, 0, dtype=torch.bool, device=device)
        if self._own.size(0) != width or self._own.device != device:
            self._own = torch.eye(width, dtype=torch.bool, device=device)
        own = self._own if tokens == 1 else self._own.repeat_interleave(tokens, dim=1)
        old, new = self.belongs, own.expand(documents, -1, -1)
        real = None if padding_mask is None else ~padding_mask.reshape(documents, 1, -1)
        self.belongs = torch.cat([old, new if real is None else new & real], dim=2)
        if tokens == 1:
            return None if self._alone else ~self.belongs
        past = torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()
        # (W, W), (T, T) -> (WT, WT): a hypothesis sees its own new tokens, up to the present one
        seen = torch.kron(self._own.byte(), past.byte()).bool().expand(documents, -1, -1)
        seen = seen if real is None else seen & real
        return ~torch.cat([old.repeat_interleave(tokens, dim=1), seen], dim=2)

    def reorder(self, order: Tensor, documents: int) -> None:
        """Keep the hypotheses ``order`` (B'W',), in that order, of so many ``documents`` B'."""
        if self.belongs is not None:
            self.belongs = self.belongs.flatten(0, 1).index_select(0, order).unflatten(0, (documents, -1))


#: receives what a function reads
Watcher = Callable[[Tensor], None]
NOBODY: Mapping[nn.Module, Watcher] = MappingProxyType({})


class Summaries(NamedTuple):
    """What stands for blocks of positions in attention."""

    keys: Tensor  # (B, H, G, E)
    values: Tensor  # (B, H, G, E)
    absent: Tensor  # (B, G), True where a document has no such block
    blocks: Tensor  # (B, L), the block that each position is in


class LayerContext(NamedTuple):
    """What sublayers, and attention kinds in them, read besides their own input; the same for all layers of a stack."""

    # (B, L), True at padding of the layers' own input, or None. In a cached step, which of all written positions each
    # query must not see, in the form that `CoreAttention.step` takes.
    padding_mask: Tensor | None = None
    memories: tuple[Memory, ...] = ()  # what cross-attention reads: each sublayer one of them, by its place
    # by function; each is called with its function's input, (B, L, D), detached, in every pass over whole sequences
    watchers: Mapping[nn.Module, Watcher] = NOBODY
    # positions of the layers' own input that all others read, and that read all others; or None
    marks: Marks | None = None
    # of the text, in which the positions of the layers' own input stand; None if nobody knows
    units: Units | None = None
    hypotheses: int = 1  # W of a document, whose new positions follow each other in a cached step; 1 elsewhere
    # (BW, T), True at new positions of a cached step that are padding, in front of all others, or None
    new_padding_mask: Tensor | None = None
    is_causal: bool = False  # a position reads those up to itself. A sublayer says so to its attention.
    key_bias: Tensor | None = None  # (B, L), what self-attention adds to the scores of each key; None for nothing
    # of blocks, if the attention kind reads any; it makes them itself (`CoreAttention.reading`)
    summaries: Summaries | None = None


NO_CONTEXT = LayerContext()


class State(ABC):
    """What a sublayer keeps between cached steps."""

    def parts(self) -> "Iterator[State]":
        """Yield the states that this one is made of; itself if it keeps tensors."""
        yield self

    @abstractmethod
    def reorder(self, order: Tensor, documents: Tensor | None) -> None:
        """Keep the hypotheses ``order`` (B'W',) of the documents ``documents`` (B',), in that order.

        None keeps all documents. A state that a document's hypotheses share depends on ``documents`` only.
        """


#: Writes what is new, (B, H, T, E), where there is room for more, (B, H, R, E); returns what attention then reads.
Put = Callable[[Tensor, Tensor], Tensor]


class CapturableState(State):
    """A state whose tensors a captured step reads and writes; see `CapturedSteps`."""

    @abstractmethod
    def held(self, new: int) -> list[Tensor] | None:
        """Return the tensors that the next step reads, or writes in place; None before the first step.

        There must be room for ``new`` = W T positions: T of each of a document's W hypotheses.
        """

    @abstractmethod
    def hold(self, tensors: Sequence[Tensor], put: Put | None) -> None:
        """Read and write these in place of those that `held` returned, while a step is captured.

        Then ``put`` writes what is new; it is None when the step is over.
        """

    def renewed(self) -> list[Tensor]:
        """Return the tensors that a step made in place of others."""
        return []

    @abstractmethod
    def stepped(self, renewed: Iterator[Tensor], new: int) -> None:
        """Take note of a step that was replayed, which made the next of the ``renewed`` tensors in place of others."""


class Carried(CapturableState):
    """What each hypothesis carries from one step to the next: one tensor (BW, ...), or None before the first step."""

    def __init__(self) -> None:
        self.value: Tensor | None = None

    def held(self, new: int) -> list[Tensor] | None:
        return None if self.value is None else [self.value]

    def hold(self, tensors: Sequence[Tensor], put: Put | None) -> None:
        (self.value,) = tensors

    def renewed(self) -> list[Tensor]:
        return [] if self.value is None else [self.value]

    def stepped(self, renewed: Iterator[Tensor], new: int) -> None:
        self.value = next(renewed)

    def reorder(self, order: Tensor, documents: Tensor | None) -> None:
        self.value = None if self.value is None else self.value.index_select(0, order)


class Pair(State):
    """The states of two parts, such as the functions of a sublayer; either may be None."""

    def __init__(self, first: State | None, second: State | None) -> None:
        self.first = first
        self.second = second

    def parts(self) -> Iterator[State]:
        yield from parts_of((self.first, self.second))

    def reorder(self, order: Tensor, documents: Tensor | None) -> None:
        for state in (self.first, self.second):
            if state is not None:
                state.reorder(order, documents)


def parts_of(states: Iterable[State | None]) -> Iterator[State]:
    """Yield the states that keep tensors among some, and among those that these are made of."""
    for state in states:
        if state is not None:
            yield from state.parts()


class SublayerFunction(nn.Module, ABC):
    """What a sublayer computes; `Sublayer` adds norm, dropout and the residual connection."""

    #: positions interact only within blocks of this many, counted from the first: 1 for what is position-wise, None for
    #: no such limit
    confined_to: int | None = None

    @property
    def steps_alike(self) -> bool:
        """Whether steps of one new position, without dropout, call the same operators; such steps can be captured."""
        return False

    @abstractmethod
    def forward(self, x: Tensor, context: LayerContext) -> Tensor:
        """Compute on whole sequences: (B, L, D) -> (B, L, D)."""

    def new_state(self) -> State | None:
        """Return the state before the first cached step; None if steps need nothing of earlier ones."""
        return None

    def step(self, x: Tensor, context: LayerContext, state: State | None) -> Tensor:
        """Compute on positions that follow those in ``state``, and extend it in place: (B, WT, D) -> (B, WT, D).

        T positions are new in each of the W hypotheses of a document.
        """
        return self(x, context)
