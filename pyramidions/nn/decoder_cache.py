"""What a decoder keeps between steps of incremental decoding."""

import torch
from torch import Tensor


class _Growing:
    """A tensor (B, H, L, E) in room that doubles when it is full, so that appending copies nothing else."""

    def __init__(self) -> None:
        self.length = 0
        self._room: Tensor | None = None

    def append(self, new: Tensor) -> Tensor:
        """Append ``new`` (B, H, T, E); return all there is."""
        start, self.length = self.length, self.length + new.size(2)
        if new.requires_grad:
            # What a backward pass will read must not be written to.
            self._room = new if self._room is None else torch.cat([self._room[:, :, :start], new], dim=2)
            return self._room
        if self._room is None or self._room.size(2) < self.length:
            room = new.new_empty(*new.shape[:2], 2 * self.length, new.size(3))
            if self._room is not None:
                room[:, :, :start] = self._room[:, :, :start]
            self._room = room
        self._room[:, :, start : self.length] = new
        return self._room[:, :, : self.length]

    def select(self, rows: Tensor) -> None:
        """Keep ``rows`` (B',), in that order."""
        if self._room is not None:
            self._room = self._room[:, :, : self.length].index_select(0, rows)


class LayerCache:
    """Keys and values of one decoder layer, (B, H, L, E) each: of what was written, and of the projected memory."""

    def __init__(self) -> None:
        self._k = _Growing()
        self._v = _Growing()
        self.memory: tuple[Tensor, Tensor] | None = None

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens, (B, H, T, E) each; return all of them."""
        return self._k.append(k), self._v.append(v)

    def select(self, documents: Tensor) -> None:
        """Keep ``documents`` (B',), in that order."""
        self._k.select(documents)
        self._v.select(documents)
        if self.memory is not None:
            self.memory = self.memory[0].index_select(0, documents), self.memory[1].index_select(0, documents)


class DecoderCache:
    """What a decoder keeps between steps: keys and values of each document, and who descends from which of them.

    The W hypotheses of a document stand together. The projected memory is theirs in common; and so is all that any of
    them ever wrote, each token in the place where it was written first. When hypotheses are replaced by descendants
    of others, none of that moves: only `lineage` changes, which says whose past each token belongs to.

    Args:
        layers: of the decoder.
    """

    def __init__(self, layers: int) -> None:
        self.layers = [LayerCache() for _ in range(layers)]
        #: target positions already decoded
        self.length = 0
        #: (B, W, S), True where the S tokens that were written for a document belong to a hypothesis; None at first
        self.lineage: Tensor | None = None
        #: what attention to the memory adds to its scores, (B, 1, 1, K), or None where nothing of it is padding
        self.memory_bias: Tensor | None = None
        self._alone = True  # no document ever had two hypotheses
        self._own = torch.zeros(0, 0, dtype=torch.bool)  # (W, W), as it was used last

    @property
    def documents(self) -> int:
        """How many documents there are, B; 0 where nothing was decoded yet."""
        return 0 if self.lineage is None else self.lineage.size(0)

    @property
    def width(self) -> int:
        """Hypotheses of a document, W; 0 where nothing was decoded yet."""
        return 0 if self.lineage is None else self.lineage.size(1)

    def advance(self, documents: int, width: int, tokens: int, device: torch.device) -> Tensor | None:
        """Make place for ``tokens`` T further positions of all hypotheses; return what they must not see.

        Returns:
            (B, WT, S + WT), True at blocked positions: other hypotheses' tokens, and later tokens of the same one.
            None where nothing is blocked.
        """
        self._alone = self._alone and width == 1
        if self.lineage is None:
            self.lineage = torch.zeros(documents, width, 0, dtype=torch.bool, device=device)
        if self._own.size(0) != width or self._own.device != device:
            self._own = torch.eye(width, dtype=torch.bool, device=device)
        self.length += tokens
        if tokens == 1:
            self.lineage = torch.cat([self.lineage, self._own.expand(documents, -1, -1)], dim=2)
            return None if self._alone else ~self.lineage
        # (W, W, T): whose the new tokens are
        own = self._own[..., None].expand(-1, -1, tokens)
        past = torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()
        # (W, T, W, T) -> (WT, WT)
        new = (own[:, None] & past[None, :, None]).reshape(width * tokens, -1)
        old = self.lineage.repeat_interleave(tokens, dim=1)
        seen = torch.cat([old, new.expand(documents, -1, -1)], dim=2)
        self.lineage = torch.cat([self.lineage, own.flatten(1).expand(documents, -1, -1)], dim=2)
        return ~seen

    def reorder(self, order: Tensor, documents: Tensor | None = None) -> None:
        """Keep the hypotheses ``order`` (B'W',) of the documents ``documents`` (B',), in that order; None keeps all."""
        if self.lineage is None:
            return
        kept = self.documents if documents is None else len(documents)
        self.lineage = self.lineage.flatten(0, 1).index_select(0, order).unflatten(0, (kept, -1))
        if documents is not None:
            for layer in self.layers:
                layer.select(documents)
            if self.memory_bias is not None:
                self.memory_bias = self.memory_bias.index_select(0, documents)
