"""The structure of a text as its tokens show it: its units, its global tokens, and the query before it."""

from typing import NamedTuple

from torch import Tensor

from pyramidions.base.device import has_values
from pyramidions.nn.marks import Marks, query_marks


class Structure(NamedTuple):
    """The structure of a batch of texts; `unit`, `marks` and `query` are those of `Sequence`."""

    unit: Tensor | None
    marks: Marks | None
    query: Marks | None


class StructureOf(NamedTuple):
    """Finds the structure of texts."""

    marker: int | None = None  # the token at which a unit of the text starts; None if nothing reads units
    separator: int | None = None  # the token between a query and its document; None for documents without queries
    name_end: int | None = None  # the token behind the name that a turn begins with, or None if the vocabulary has none
    global_tokens: int = 0  # this many tokens at the beginning of a text are global
    global_marker: int | None = None  # a token that is global wherever it stands, or None
    global_query: bool = False  # the tokens of the query are global
    reads_query: bool = False  # a part reads `Sequence.query`

    def __call__(self, tokens: Tensor, padding_mask: Tensor, marked: Tensor | None = None) -> Structure:
        """Find the structure of tokens (B, L); ``marked`` (B, L) are further global ones, or None.

        The host waits for a GPU to learn how long queries are, and how many tokens besides the first ones are global.
        """
        query = None
        if self.separator is not None and (self.global_query or self.reads_query):
            query = query_marks(tokens, padding_mask, self.separator)
            if self.global_query:
                marked = query.marked if marked is None else marked | query.marked
        units, marks = self.units(tokens, padding_mask), self._marks(tokens, ~padding_mask, marked)
        return Structure(units, marks, query if self.reads_query else None)

    def units(self, tokens: Tensor, padding_mask: Tensor) -> Tensor | None:
        """Return the number of the unit that each token stands in, -1 at padding: (B, L); None without a marker.

        A unit starts with its document, and at each marker; a query before the document is a unit of its own.
        """
        if self.marker is None:
            return None
        real = ~padding_mask
        starts = tokens.eq(self.marker) | (real.cumsum(dim=1) == 1)
        if self.separator is not None:
            # (B, L), the token before each
            starts[:, 1:] |= tokens[:, :-1] == self.separator
        return ((starts & real).cumsum(dim=1) - 1).masked_fill(padding_mask, -1)

    def _marks(self, tokens: Tensor, real: Tensor, further: Tensor | None) -> Marks | None:
        marked = real & (real.cumsum(dim=1) <= self.global_tokens)
        if self.global_marker is None and further is None:
            return Marks(marked, self.global_tokens) if self.global_tokens else None
        if self.global_marker is not None:
            marked = marked | (tokens.eq(self.global_marker) & real)
        if further is not None:
            marked = marked | (further & real)
        return Marks(marked, int(marked.sum(dim=1).max()) if has_values(marked) else marked.size(1))
