"""What a decoder keeps between cached steps."""

import torch
from torch import Tensor

from pyramidions.nn.decoder.static import RecordedSteps
from pyramidions.nn.output import PointerMemory
from pyramidions.nn.sublayer import Lineage, Memory, State, staying


class DecoderCache:
    """What a decoder keeps between steps: the states of its sublayers, and who descends from which hypothesis."""

    def __init__(self, states: list[list[State | None]], recorded_steps: RecordedSteps | None = None) -> None:
        self.states = states
        self.recorded_steps = recorded_steps
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
