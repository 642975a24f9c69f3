"""What an hourglass keeps between cached steps."""

import torch
from torch import Tensor

from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.sublayer import State


class Written:
    """Which of the positions that were written so far are real, and not padding of a row that had fewer."""

    def __init__(self) -> None:
        self.length = 0
        #: (B, S); None while all are
        self.real: Tensor | None = None

    def extend(self, x: Tensor, padding_mask: Tensor | None) -> Tensor | None:
        """Add new positions (B, T, D); return the `as_bias` of what each must not see, padding and later ones, or None.

        Padding follows a row's real positions. (B, 1, T, S + T).
        """
        (batch, count, _), start = x.shape, self.length
        self.length += count
        if self.real is None and padding_mask is not None:
            self.real = padding_mask.new_ones(batch, start)
        if self.real is not None:
            new = self.real.new_ones(batch, count) if padding_mask is None else ~padding_mask
            self.real = torch.cat([self.real, new], dim=1)
        elif count == 1:
            return None
        # (T, S + T) -> (B, T, S + T)
        blocked = (
            torch.ones(count, self.length, dtype=torch.bool, device=x.device).triu(start + 1).expand(batch, -1, -1)
        )
        return as_bias(blocked if self.real is None else blocked | ~self.real[:, None], x)

    def select(self, rows: Tensor) -> None:
        """Keep ``rows`` (B',), in that order."""
        self.real = None if self.real is None else self.real.index_select(0, rows)


class ShortenedState:
    """What a shortened part keeps: the segment that did not end yet, if pooling needs it, and the inner hourglass."""

    def __init__(self, open: State | None, inner: "HourglassState") -> None:
        self.open = open
        self.inner = inner
        #: (B, D), what the positions of an open segment read; None before the first step
        self.latest: Tensor | None = None
        #: real positions so far, of all rows or (B, 1)
        self.start: int | Tensor = 0
        #: (B, D), the last of them; None before the first step
        self.before: Tensor | None = None

    def advance(self, x: Tensor, padding_mask: Tensor | None) -> None:
        """Go on by new positions ``x`` (B, T, D), of which ``padding_mask`` (B, T) or None is padding."""
        if padding_mask is None:
            self.start, self.before = self.start + x.size(1), x[:, -1]
            return
        count = (~padding_mask).sum(dim=1, keepdim=True)
        # (B, T, D) -> (B, 1 + T, D)
        known = torch.cat([x[:, :1] if self.before is None else self.before[:, None], x], dim=1)
        self.start = self.start + count
        self.before = known.gather(1, count[..., None].expand(-1, -1, x.size(2))).squeeze(1)

    def select(self, rows: Tensor) -> None:
        """Keep ``rows`` (B',), in that order."""
        if self.open is not None:
            self.open.reorder(rows, rows)
        self.inner.select(rows)
        self.latest = None if self.latest is None else self.latest.index_select(0, rows)
        self.before = None if self.before is None else self.before.index_select(0, rows)
        self.start = self.start.index_select(0, rows) if isinstance(self.start, Tensor) else self.start


class HourglassState:
    """What an hourglass keeps: of each sublayer of the layers that run first and last, and of the shortened part."""

    def __init__(
        self, before: list[list[State | None]], after: list[list[State | None]], shortened: ShortenedState | None
    ) -> None:
        self.before = before
        self.after = after
        self.shortened = shortened
        self.written = Written()

    def select(self, rows: Tensor) -> None:
        """Keep ``rows`` (B',), in that order."""
        for layer in (*self.before, *self.after):
            for state in layer:
                if state is not None:
                    # Each row is a text of its own.
                    state.reorder(rows, rows)
        self.written.select(rows)
        if self.shortened is not None:
            self.shortened.select(rows)
