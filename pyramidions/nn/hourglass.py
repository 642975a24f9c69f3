"""Layers that read positions, around layers that read segments of them, and what they keep between steps."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from pyramidions.nn.boundaries import Boundaries, HiddenStates, Segmentation
from pyramidions.nn.functional.masking import as_bias
from pyramidions.nn.layer import Layer
from pyramidions.nn.segment_pooling import SegmentPooler, SegmentUpsampler
from pyramidions.nn.stack import Stack
from pyramidions.nn.sublayer import LayerContext, Lineage, State


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
        self.written = Lineage()

    def select(self, rows: Tensor) -> None:
        """Keep ``rows`` (B',), in that order."""
        for layer in (*self.before, *self.after):
            for state in layer:
                if state is not None:
                    # Each row is a text of its own.
                    state.reorder(rows, rows)
        self.written.reorder(rows, len(rows))
        if self.shortened is not None:
            self.shortened.select(rows)


class Hourglass(nn.Module):
    """Causal layers, with a shortened part between them (Nawrot et al. 2022; 2023, section 2).

    An upsampler joins what the shortened part tells of a position with what the layers before it handed on. That part
    may hold an hourglass in turn.
    """

    def __init__(
        self, before: Sequence[Layer], shortened: "Shortened | None" = None, after: Sequence[Layer] = ()
    ) -> None:
        super().__init__()
        self.before = nn.ModuleList(before)
        self.shortened = shortened
        self.after = nn.ModuleList(after)

    def all_shortened(self) -> "Iterator[Shortened]":
        """Yield all shortened parts, the outermost first."""
        if self.shortened is not None:
            yield self.shortened
            yield from self.shortened.inner.all_shortened()

    def forward(
        self, x: Tensor, tokens: Tensor | None, padding_mask: Tensor | None, stack: Stack, start: int = 0
    ) -> tuple[Tensor, list[Segmentation]]:
        """Read whole sequences (B, L, D), padded on the right if at all.

        They stand for ``tokens`` (B, L), or for segments if these are None; the first has position ``start``. Returns
        (B, L, D), and where segments end, of the outermost shortened part first.
        """
        context = LayerContext()
        x = stack(_layers(self.before), x, context)
        if self.shortened is None:
            return x, []
        x, segmentations = self.shortened(x, tokens, padding_mask, stack, start)
        return stack(_layers(self.after), x, context), segmentations

    def mark(
        self, x: Tensor, tokens: Tensor, padding_mask: Tensor | None, stack: Stack, start: int
    ) -> Segmentation | None:
        """Return where segments of the shortened part end, without running it, or None; arguments as in `forward`."""
        if self.shortened is None:
            return None
        x = stack(_layers(self.before), x, LayerContext())
        return self.shortened.boundaries(HiddenStates(x, tokens, padding_mask, start))

    def new_state(self) -> HourglassState:
        """Return the state before the first cached step."""
        before, after = ([layer.new_states() for layer in _layers(layers)] for layers in (self.before, self.after))
        return HourglassState(before, after, None if self.shortened is None else self.shortened.new_state())

    def step(
        self, x: Tensor, tokens: Tensor | None, padding_mask: Tensor | None, stack: Stack, state: HourglassState
    ) -> Tensor:
        """Read the positions that follow those in ``state``, and extend it in place; arguments as in `forward`."""
        blocked = state.written.extend(len(x), 1, x.size(1), x.device, padding_mask)
        context = LayerContext(None if blocked is None else as_bias(blocked, x))
        x = stack.step(_layers(self.before), x, context, state.before)
        if self.shortened is None or state.shortened is None:
            return x
        x = self.shortened.step(x, tokens, padding_mask, stack, state.shortened)
        return stack.step(_layers(self.after), x, context, state.after)


class Shortened(nn.Module):
    """An hourglass over segments: what it hands on of a segment is repeated from its last position on.

    Before a row's first boundary that is the output of the null group, a learned vector that stands in front of the
    segments. So no position sees a later one.
    """

    def __init__(
        self,
        boundaries: Boundaries,
        segments: SegmentPooler,
        inner: Hourglass,
        upsampling: SegmentUpsampler,
        embed_dim: int,
    ) -> None:
        super().__init__()
        if boundaries.learns_from_segments and not segments.teaches_boundaries:
            raise ValueError(
                f"{type(boundaries).__name__} learns from means of segments, but `segments` are pooled by "
                f"{type(segments).__name__}."
            )
        if boundaries.learns_from_upsampling and not upsampling.reads_probabilities:
            raise ValueError(
                f"{type(boundaries).__name__} learns from smoothed segments, but `upsampling` is by "
                f"{type(upsampling).__name__}."
            )
        if upsampling.reads_probabilities and not boundaries.predicts:
            raise ValueError(
                f"{type(upsampling).__name__} reads probabilities of boundaries, but `boundaries` are "
                f"{type(boundaries).__name__}."
            )
        self.boundaries = boundaries
        self.segments = segments
        self.inner = inner
        self.upsampling = upsampling
        self.norm = nn.LayerNorm(embed_dim)
        self.null_group = nn.Parameter(torch.randn(embed_dim))

    def forward(
        self, x: Tensor, tokens: Tensor | None, padding_mask: Tensor | None, stack: Stack, start: int = 0
    ) -> tuple[Tensor, list[Segmentation]]:
        """Return what the layers after it read; arguments and results as in `Hourglass.forward`."""
        marked = self.boundaries(HiddenStates(x, tokens, padding_mask, start))
        # (B, K, D) -> (B, K + 1, D)
        read = self._with_null_group(self.segments(x, marked.boundaries))
        # Rows have different numbers of segments.
        beyond = torch.arange(read.size(1), device=x.device) > marked.closed[:, None]
        read, inner = self.inner(self.norm(read), None, beyond, stack)
        read = self.upsampling.along(read, marked)
        return self.upsampling(read, marked, x), [marked, *inner]

    def new_state(self) -> ShortenedState:
        """Return the state before the first cached step."""
        return ShortenedState(self.segments.new_state(), self.inner.new_state())

    def step(
        self, x: Tensor, tokens: Tensor | None, padding_mask: Tensor | None, stack: Stack, state: ShortenedState
    ) -> Tensor:
        """Return what is read of new positions; the inner hourglass runs where a segment ends, and at first."""
        marked = self.boundaries(HiddenStates(x, tokens, padding_mask, state.start, state.before))
        ended = self.segments.step(x, marked.boundaries, state.open, padding_mask)
        closed, known = marked.closed, []
        if state.latest is None:
            ended = self._with_null_group(ended)
            beyond = torch.arange(ended.size(1), device=x.device) > closed[:, None]
        else:
            beyond = torch.arange(ended.size(1), device=x.device) >= closed[:, None]
            # (B, D) -> (B, 1, D)
            known.append(state.latest[:, None])
        if ended.size(1):
            hidden = beyond if bool(beyond.any()) else None
            new = self.inner.step(self.norm(ended), None, hidden, stack, state.inner)
            known.append(self.upsampling.along(new, marked, state.latest))
        # What a position reads up to its first new boundary, and after each: (B, 1 + K, D)
        read = torch.cat(known, dim=1)
        state.advance(x, padding_mask)
        state.latest = read.gather(1, closed[:, None, None].expand(-1, 1, read.size(2))).squeeze(1)
        return self.upsampling(read, marked, x)

    def _with_null_group(self, segments: Tensor) -> Tensor:
        null_group = self.null_group.to(segments.dtype).expand(len(segments), 1, -1)
        return torch.cat([null_group, segments], dim=1)


def _layers(modules: nn.ModuleList) -> list[Layer]:
    return [module for module in modules if isinstance(module, Layer)]
