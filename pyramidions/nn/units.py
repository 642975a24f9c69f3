"""The units of the text: which vectors stand in which, and how to compute inside units only."""

from collections import defaultdict
from typing import NamedTuple

import torch
from torch import Tensor

from pyramidions.base.device import has_values
from pyramidions.nn.functional.kernels import on_device

#: rows of at most so many positions are not sorted by their length
_SHORT = 16


class Rows(NamedTuple):
    """Segments of like length."""

    members: Tensor  # (N * M), of each position of a segment its place in the flattened batch
    shape: tuple[int, int]  # N, M
    # (N, M), True behind a segment's last position, or None if all segments fill their rows
    padding_mask: Tensor | None


class Segments:
    """Runs of positions of a flattened batch (B, L), as rows in batches of like length.

    At least half of a row of more than 16 positions is no padding. Of each run is given where it starts, and how long
    it is, in their order; there is one at least.
    """

    def __init__(self, runs: list[tuple[int, int]], batch: tuple[int, int], device: torch.device) -> None:
        self._batch = batch
        count = batch[0] * batch[1]
        alike: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for start, length in runs:
            # 16, 32, 64 ...
            alike[max(_SHORT, 1 << (length - 1).bit_length())].append((start, length))
        self.rows: list[Rows] = []
        moved: dict[int, int] = {}
        before = 0
        for some in alike.values():
            width = max(length for _, length in some)
            moved |= {start: before + row * width - start for row, (start, _) in enumerate(some)}
            before += len(some) * width
            self.rows.append(_rows(some, width, count, device))
        positions = torch.arange(count, device=device)
        starts = on_device([start for start, _ in runs], device)
        # Of each position the run in which it stands; padding stands in that before it.
        run = torch.zeros_like(positions).index_fill(0, starts, 1).cumsum(0).sub(1).clamp(min=0)
        shift = on_device([moved[start] for start, _ in runs], device)
        self._places = (positions + shift.index_select(0, run)).clamp(0, before - 1)

    def pack(self, x: Tensor, rows: Rows) -> Tensor:
        """Return a batch of rows: (B, H, L, E) -> (N, H, M, E)."""
        flat = x.transpose(1, 2).flatten(0, 1)
        return flat.index_select(0, rows.members).unflatten(0, rows.shape).transpose(1, 2)

    def unpack(self, x: list[Tensor]) -> Tensor:
        """Undo `pack` for all `rows`, with anything finite at padding: (N, H, M, E) each -> (B, H, L, E)."""
        return self.unpack_flat([rows.transpose(1, 2).flatten(0, 1) for rows in x]).transpose(1, 2)

    def unpack_flat(self, x: list[Tensor]) -> Tensor:
        """Undo packing of rows that were flattened: (N * M, ...) each -> (B, L, ...)."""
        return torch.cat(x).index_select(0, self._places).unflatten(0, self._batch)


def _rows(runs: list[tuple[int, int]], width: int, count: int, device: torch.device) -> Rows:
    columns = torch.arange(width, device=device)
    # (N, 1) + (M) -> (N, M); what stands behind a run is masked, so that it may be anything.
    members = (on_device([start for start, _ in runs], device)[:, None] + columns).clamp(max=count - 1)
    full = all(length == width for _, length in runs)
    mask = None if full else columns >= on_device([length for _, length in runs], device)[:, None]
    return Rows(members.flatten(), (len(runs), width), mask)


class Units:
    """The units of a batch, given by `Sequence.unit`; each run of vectors of one unit counts as one."""

    def __init__(self, unit: Tensor) -> None:
        self.unit = unit
        self._segments: dict[int, Segments] = {}

    def segments(self, length: int) -> Segments:
        """Return the units cut to at most ``length`` positions; the host waits for a GPU once per length."""
        if length not in self._segments:
            batch = (self.unit.size(0), self.unit.size(1))
            pieces = [
                (start + offset, min(length, size - offset))
                for start, size in self._runs()
                for offset in range(0, size, length)
            ]
            self._segments[length] = Segments(pieces or [(0, 1)], batch, self.unit.device)
        return self._segments[length]

    def _runs(self) -> list[tuple[int, int]]:
        """Return where runs of one unit start in the flattened batch, and how long they are, without padding."""
        count, length = self.unit.shape
        if not has_values(self.unit):
            # Attention costs the most that it may if a document is one unit.
            return [(row * length, length) for row in range(count)]
        starts = self._leads.flatten().nonzero().flatten()
        runs = torch.stack([starts, self.unit.flatten()[starts]]).tolist()
        ends = [*runs[0][1:], count * length]
        return [(start, end - start) for start, end, unit in zip(runs[0], ends, runs[1], strict=True) if unit >= 0]

    @property
    def _leads(self) -> Tensor:
        # A document starts a run, and so does padding.
        return self.unit.diff(dim=1, prepend=torch.full_like(self.unit[:, :1], -2)) != 0

    @property
    def places(self) -> Tensor:
        """How many vectors of its unit stand before each: (B, L)."""
        place = torch.arange(self.unit.size(1), device=self.unit.device).expand_as(self.unit)
        return place - place.masked_fill(~self._leads, 0).cummax(dim=1).values
