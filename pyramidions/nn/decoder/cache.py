"""What a decoder keeps between cached steps."""

import torch
from torch import Tensor

from pyramidions.nn.output import PointerMemory
from pyramidions.nn.sublayer import Memory, State, staying


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

    def extend(self, documents: int, width: int, tokens: int, device: torch.device) -> Tensor | None:
        """Add ``tokens`` T new positions to each of ``width`` W hypotheses; return what these must not see, or None.

        (B, WT, S + WT), True at other hypotheses' tokens, and at later tokens of the same one.
        """
        self._alone = self._alone and width == 1
        if self.belongs is None:
            self.belongs = torch.zeros(documents, width, 0, dtype=torch.bool, device=device)
        if self._own.size(0) != width or self._own.device != device:
            self._own = torch.eye(width, dtype=torch.bool, device=device)
        if tokens == 1:
            self.belongs = torch.cat([self.belongs, self._own.expand(documents, -1, -1)], dim=2)
            return None if self._alone else ~self.belongs
        seen = self._seen(self.belongs, self._own, tokens)
        new = self._own.repeat_interleave(tokens, dim=1)
        self.belongs = torch.cat([self.belongs, new.expand(documents, -1, -1)], dim=2)
        return ~seen

    @staticmethod
    def _seen(belongs: Tensor, own: Tensor, tokens: int) -> Tensor:
        """Return what several new tokens see: (B, W, S), (W, W) -> (B, WT, S + WT)."""
        past = torch.ones(tokens, tokens, dtype=torch.bool, device=own.device).tril()
        # (W, W), (T, T) -> (WT, WT): a hypothesis sees its own new tokens, up to the present one
        new = torch.kron(own.byte(), past.byte()).bool()
        old = belongs.repeat_interleave(tokens, dim=1)
        return torch.cat([old, new.expand(len(old), -1, -1)], dim=2)

    def reorder(self, order: Tensor, documents: int) -> None:
        """Keep the hypotheses ``order`` (B'W',), in that order, of so many ``documents`` B'."""
        if self.belongs is not None:
            self.belongs = self.belongs.flatten(0, 1).index_select(0, order).unflatten(0, (documents, -1))


class DecoderCache:
    """What a decoder keeps between steps: the states of its sublayers, and who descends from which hypothesis."""

    def __init__(self, states: list[list[State | None]]) -> None:
        self.states = states
        #: target positions already decoded
        self.length = 0
        self.lineage = Lineage()
        #: what the output layer reads of the memories; None before the first step, and if it reads none
        self.prepared: PointerMemory | None = None

    @property
    def documents(self) -> int:
        """How many documents there are, B; 0 where nothing was decoded yet."""
        return 0 if self.lineage.belongs is None else self.lineage.belongs.size(0)

    @property
    def width(self) -> int:
        """Hypotheses of a document, W; 0 where nothing was decoded yet."""
        return 0 if self.lineage.belongs is None else self.lineage.belongs.size(1)

    def advance(self, documents: int, width: int, tokens: int, device: torch.device) -> Tensor | None:
        """Make room for ``tokens`` new positions of each hypothesis; return the mask of `Lineage.extend`."""
        self.length += tokens
        return self.lineage.extend(documents, width, tokens, device)

    def begin(self, memory: Memory, width: int) -> None:
        """Share what was read of a memory among ``width`` hypotheses of each document; nothing is decoded yet."""
        self.lineage.begin(memory, width)
        if width > 1:
            order = torch.arange(len(memory.x), device=memory.x.device).repeat_interleave(width)
            self._move(order, None)

    def reorder(self, order: Tensor, width: int) -> None:
        """Keep the hypotheses ``order`` (B'W',), ``width`` W' of a document; see `staying`."""
        if self.documents:
            self.select(order, staying(order, width, self.documents, self.width))

    def select(self, order: Tensor, documents: Tensor | None) -> None:
        """Keep the hypotheses ``order`` (B'W',) of the documents ``documents`` (B',), in that order; None keeps all."""
        self.lineage.reorder(order, self.documents if documents is None else len(documents))
        self._move(order, documents)
        if documents is not None:
            self.prepared = None if self.prepared is None else self.prepared.select(documents)

    def _move(self, order: Tensor, documents: Tensor | None) -> None:
        for layer in self.states:
            for state in layer:
                if state is not None:
                    state.reorder(order, documents)
