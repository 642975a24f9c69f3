"""The encoder: an embedder and stages."""

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from pyramidions.nn.attention import Feature, SelfAttention
from pyramidions.nn.block_layout import lengths_of
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.layer import Layer
from pyramidions.nn.marks import Marking, Marks, query_marks
from pyramidions.nn.origins import Origins
from pyramidions.nn.pooling import Pooled, Pooler
from pyramidions.nn.roles import Roles
from pyramidions.nn.sequence import Sequence
from pyramidions.nn.stack import Stack
from pyramidions.nn.stage import Stage
from pyramidions.nn.sublayer import Memory
from pyramidions.nn.units import Units


class Encoded(NamedTuple):
    """What an encoder made of a batch.

    Attributes:
        sequence: the output of the last layer, K vectors a document.
        pooled: the output of each pooler, by the number of the layer before it (from 0).
        memories: what the decoder reads, in the order in which it does: the output, and those of earlier layers.
    """

    sequence: Sequence
    pooled: dict[int, Pooled]
    memories: tuple[Memory, ...]


class Encoder(nn.Module):
    """Embeds tokens, and runs stages, which pool (Pietruszka et al. 2022, section 3.1).

    Args:
        embedder: of tokens and positions.
        stages: run one after the other.
        stack: composes their layers.
        norm: normalises the output (pre-norm models), or None.
        marker_idx: the token at which a unit of the text starts, or None if the vocabulary has none.
        marking: which tokens are global, or None.
        separator_idx: the token between a query and its document; None for documents without queries.
        global_query: the tokens of the query are global.
        reads_query: a part reads `Sequence.query`.
        memories: what the decoder reads, in that order: by its number (from 0) one of the memories that stages make, or
            None for the output.
        name_end_idx: the token behind the name that a turn begins with, or None if the vocabulary has none.
        last_stack: composes the layers of the last stage; None for ``stack``.
    """

    def __init__(
        self,
        embedder: Embedder,
        stages: list[Stage],
        stack: Stack,
        norm: nn.LayerNorm | None = None,
        marker_idx: int | None = None,
        marking: Marking | None = None,
        separator_idx: int | None = None,
        global_query: bool = False,
        reads_query: bool = False,
        memories: tuple[int | None, ...] = (None,),
        name_end_idx: int | None = None,
        last_stack: Stack | None = None,
    ) -> None:
        super().__init__()
        self.embedder = embedder
        self.stages = stages
        self.layers = nn.ModuleList(layer for stage in self.all_stages() for layer in stage.layers)
        #: what follows the layer of that number (from 0)
        self.poolers = nn.ModuleDict()
        self.upsamplers = nn.ModuleDict()
        self.memory_norms = nn.ModuleDict()
        run = 0
        for stage in self.all_stages():
            run += len(stage.layers)
            for parts, part in (
                (self.poolers, stage.pooler),
                (self.upsamplers, stage.upsampler),
                (self.memory_norms, stage.memory),
            ):
                if part is not None:
                    parts[str(run - 1)] = part
        self.stack = stack
        self.last_stack = last_stack or stack
        self.norm = norm
        self.memories = memories
        self.marker_idx = marker_idx
        self.name_end_idx = name_end_idx
        self.marking = marking or Marking()
        self.separator_idx = separator_idx
        self.global_query = global_query
        self.reads_query = reads_query
        #: whether memories tell which tokens their vectors are made of, as an output layer that points needs it
        self.tells_origins = False

    def all_stages(self) -> list[Stage]:
        """Return all stages, inner ones too, in the order in which their layers run."""
        return [inner for stage in self.stages for inner in stage.all_stages()]

    @property
    def _restarts_in_units(self) -> bool:
        """Whether positions count from the start of each unit: the first layer stays inside, and a pooler numbers them.

        Without such a pooler nobody behind would know which unit comes first.
        """
        attention = next((stage.layers[0].function(SelfAttention) for stage in self.all_stages() if stage.layers), None)
        inside = attention is not None and Feature.UNITS in attention.attention.supports
        return inside and any(cast(Pooler, pooler).numbers_units for pooler in self.poolers.values())

    def forward(
        self,
        tokens: Tensor,
        padding_mask: Tensor,
        lengths: list[int] | None = None,
        marked: Tensor | None = None,
    ) -> Encoded:
        """Encode a batch.

        Args:
            tokens: (B, L); where the embedder has tags, each is its number plus V times its tag.
            padding_mask: (B, L), True at padding.
            lengths: number of real tokens of each document, B integers, if all padding is on the right. With None they
                are read from the mask, for which the host waits for a GPU.
            marked: (B, L), True at tokens that are global beside those of ``marking``; or None.

        Raises:
            ValueError: tokens are marked, but no layer reads marks.
        """
        if marked is not None and not any(_reads_marks(layer) for stage in self.all_stages() for layer in stage.layers):
            raise ValueError("`marked` needs attention that reads marks, but no layer has one.")
        lengths = lengths_of(padding_mask) if lengths is None else lengths
        tags = None
        if self.embedder.tags is not None:
            vocabulary = self.embedder.tokens.num_embeddings
            tokens, tags = tokens % vocabulary, tokens // vocabulary
        position = torch.arange(tokens.size(1), device=tokens.device).expand(tokens.shape)
        query = self._query(tokens, padding_mask)
        units, marks = self.units(tokens, padding_mask), self._marks(tokens, padding_mask, marked, query)
        read = query if self.reads_query else None
        # What stays inside a unit must not learn how long those before it are.
        place = Units(units).places if units is not None and self._restarts_in_units else None
        x = self.embedder(tokens, position=place, tags=tags)
        roles = self._roles(tokens, units)
        origins = Origins.of_tokens(tokens, padding_mask, x.dtype) if self.tells_origins else None
        sequence = Sequence(x, padding_mask, position, lengths, units, marks, read, roles, origins)
        poolings: list[Pooled] = []
        made: list[Sequence] = []
        for stage in self.stages:
            passed = stage(sequence, self.last_stack if stage is self.stages[-1] else self.stack)
            sequence, poolings, made = passed.sequence, poolings + passed.poolings, made + passed.memories
        if self.norm is not None:
            sequence = sequence._replace(x=self.norm(sequence.x))
        pooled = dict(zip(map(int, self.poolers), poolings, strict=True))
        memories = (sequence if number is None else made[number] for number in self.memories)
        read_by_decoder = tuple(
            Memory(memory.x, memory.attention_mask, memory.origins, memory.key_bias) for memory in memories
        )
        return Encoded(sequence, pooled, read_by_decoder)

    def seen_by_all(self, tokens: Tensor, padding_mask: Tensor) -> Tensor | None:
        """Return which tokens are global, (B, L); None if none is."""
        marks = self._marks(tokens, padding_mask, None, self._query(tokens, padding_mask))
        return None if marks is None else marks.marked

    def _marks(self, tokens: Tensor, padding_mask: Tensor, marked: Tensor | None, query: Marks | None) -> Marks | None:
        if query is not None and self.global_query:
            marked = query.marked if marked is None else marked | query.marked
        return self.marking(tokens, padding_mask, marked)

    @property
    def memory_layers(self) -> tuple[int | None, ...]:
        """The layer (from 0) whose output each of the memories is, None for the output of the encoder."""
        layers = [int(layer) for layer in self.memory_norms]
        return tuple(None if number is None else layers[number] for number in self.memories)

    def _query(self, tokens: Tensor, padding_mask: Tensor) -> Marks | None:
        if self.separator_idx is None or not (self.global_query or self.reads_query):
            return None
        return query_marks(tokens, padding_mask, self.separator_idx)

    def _roles(self, tokens: Tensor, units: Tensor | None) -> Roles | None:
        reads = any(cast(Pooler, pooler).reads_roles for pooler in self.poolers.values())
        if not reads or units is None or self.marker_idx is None:
            return None
        return Roles(tokens, units, self.embedder.tokens, self.marker_idx, self.name_end_idx)

    def units(self, tokens: Tensor, padding_mask: Tensor) -> Tensor | None:
        """Return the number of the unit that each token stands in, -1 at padding: (B, L).

        A unit starts with its document, and at each marker; a query before the document is a unit of its own. None for
        an encoder without a marker.
        """
        if self.marker_idx is None:
            return None
        real = ~padding_mask
        starts = tokens.eq(self.marker_idx) | (real.cumsum(dim=1) == 1)
        if self.separator_idx is not None:
            # (B, L), the token before each
            starts[:, 1:] |= tokens[:, :-1] == self.separator_idx
        return ((starts & real).cumsum(dim=1) - 1).masked_fill(padding_mask, -1)


def _reads_marks(layer: Layer) -> bool:
    attention = layer.function(SelfAttention)
    return attention is not None and attention.global_rows is not None
