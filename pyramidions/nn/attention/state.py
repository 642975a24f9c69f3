"""What attention keeps between cached steps."""

from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import Tensor

from pyramidions.nn.sublayer import CapturableState, Put, State, parts_of


class _Growing:
    """A tensor (B, H, L, E) whose storage doubles when it is full, so that appending rarely copies it."""

    def __init__(self) -> None:
        self.length = 0
        self._room: Tensor | None = None
        self._put: Put | None = None  # while a step is captured

    def append(self, new: Tensor) -> Tensor:
        """Append ``new`` (B, H, T, E); return the whole tensor."""
        if self._put is not None:
            return self._put(cast(Tensor, self._room), new)
        start, self.length = self.length, self.length + new.size(2)
        if new.requires_grad:
            # A backward pass will read this memory, so it must not be overwritten.
            self._room = new if self._room is None else torch.cat([self._room[:, :, :start], new], dim=2)
            return self._room
        if self._room is None:
            self._room = new.new_empty(*new.shape[:2], 2 * self.length, new.size(3))
        self._make_room(start, self.length)
        # Twice as fast as an assignment to a slice.
        self._room.narrow(2, start, new.size(2)).copy_(new)
        return self._room.narrow(2, 0, self.length)

    def _make_room(self, length: int, longer: int) -> None:
        """Copy the first ``length`` positions where there is no room for ``longer``."""
        assert self._room is not None
        if self._room.size(2) < longer:
            room = self._room.new_empty(*self._room.shape[:2], 2 * longer, self._room.size(3))
            room[:, :, :length] = self._room[:, :, :length]
            self._room = room

    def room(self, new: int) -> Tensor | None:
        """Return where so many more positions have room; None where nothing was written."""
        if self._room is not None:
            self._make_room(self.length, self.length + new)
        return self._room

    def write_in(self, room: Tensor, put: Put | None) -> None:
        """Append in ``room`` next; see `CapturableState.hold`."""
        self._room, self._put = room, put

    def select(self, rows: Tensor) -> None:
        """Keep ``rows`` (B',), in that order."""
        if self._room is not None:
            self._room = self._room[:, :, : self.length].index_select(0, rows)


class KeysValues(CapturableState):
    """Keys and values of a document's written tokens, (B, H, S, E) each, shared by its hypotheses."""

    def __init__(self) -> None:
        self._k = _Growing()
        self._v = _Growing()

    def extend(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append the keys and values of new tokens, (B, H, T, E) each; return all of them."""
        return self._k.append(k), self._v.append(v)

    @property
    def length(self) -> int:
        """How many tokens were written."""
        return self._k.length

    def held(self, new: int) -> list[Tensor] | None:
        k, v = self._k.room(new), self._v.room(new)
        return None if k is None or v is None else [k, v]

    def hold(self, tensors: Sequence[Tensor], put: Put | None) -> None:
        for growing, room in zip((self._k, self._v), tensors, strict=True):
            growing.write_in(room, put)

    def stepped(self, renewed: Iterator[Tensor], new: int) -> None:
        self._k.length += new
        self._v.length += new

    def reorder(self, order: Tensor, documents: Tensor | None) -> None:
        if documents is not None:
            self._k.select(documents)
            self._v.select(documents)


class HashedKeysValues(State):
    """Keys, values and buckets of a document's written tokens, shared by its hypotheses; all steps hash alike."""

    def __init__(self) -> None:
        self._keys_values = KeysValues()
        self._buckets = _Growing()
        self.rotations: Tensor | None = None

    def extend(self, k: Tensor, v: Tensor, buckets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Append what new tokens have, (B, H, T, E) twice and (B, H', T, R); return all of it."""
        return *self._keys_values.extend(k, v), self._buckets.append(buckets)

    def reorder(self, order: Tensor, documents: Tensor | None) -> None:
        self._keys_values.reorder(order, documents)
        if documents is not None:
            self._buckets.select(documents)


class ProjectedDistances(KeysValues):
    """Keys and values, and what queries meet of distances, (1, H, N, E), which all documents share."""

    def __init__(self) -> None:
        super().__init__()
        self._by_distance = _Growing()

    @property
    def distances(self) -> int:
        """How many distances are known, from 0 on."""
        return self._by_distance.length

    def extend_distances(self, new: Tensor) -> Tensor:
        """Append what queries meet of the next distances, (1, H, N, E); return all of it."""
        return self._by_distance.append(new)


class ProjectedMemory(CapturableState):
    """What a document's hypotheses read of its memory, and the state of the projections that make queries, or None."""

    def __init__(self, projections: State | None = None) -> None:
        self.projections = projections
        #: (B, H, Lk, E) each
        self.keys_values: tuple[Tensor, Tensor] | None = None
        #: (B, ...), of the keys, or None
        self.mask: Tensor | None = None

    def parts(self) -> Iterator[State]:
        yield self
        yield from parts_of((self.projections,))

    def held(self, new: int) -> list[Tensor] | None:
        return None if self.keys_values is None else [*self.keys_values, *([] if self.mask is None else [self.mask])]

    def hold(self, tensors: Sequence[Tensor], put: Put | None) -> None:
        k, v, *masks = tensors
        self.keys_values, self.mask = (k, v), masks[0] if masks else None

    def stepped(self, renewed: Iterator[Tensor], new: int) -> None:
        """Do nothing: no step changes a memory."""

    def reorder(self, order: Tensor, documents: Tensor | None) -> None:
        if self.projections is not None:
            self.projections.reorder(order, documents)
        if documents is None or self.keys_values is None:
            return
        k, v = self.keys_values
        self.keys_values = k.index_select(0, documents), v.index_select(0, documents)
        self.mask = None if self.mask is None else self.mask.index_select(0, documents)
