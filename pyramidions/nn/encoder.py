"""The encoder: an embedder and stages."""

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from pyramidions.nn.attention import Feature, SelfAttention
from pyramidions.nn.block_layout import lengths_of
from pyramidions.nn.embedding import Embedder
from pyramidions.nn.layer import Layer
from pyramidions.nn.pooling import Pooled, Pooler
from pyramidions.nn.provenance import Origins
from pyramidions.nn.roles import Roles
from pyramidions.nn.sequence import Sequence
from pyramidions.nn.stack import Stack
from pyramidions.nn.stage import Stage
from pyramidions.nn.structure import StructureOf
from pyramidions.nn.sublayer import Memory
from pyramidions.nn.units import Units


class Encoded(NamedTuple):
    """What an encoder made of a batch."""

    sequence: Sequence  # the output of the last layer, K vectors a document
    pooled: dict[int, Pooled]  # the output of each pooler, by the number of the layer before it (from 0)
    # what the decoder reads, in the order in which it does: the output, and those of earlier layers
    memories: tuple[Memory, ...]


class Encoder(nn.Module):
    """Embeds tokens, and runs stages, which pool (Pietruszka et al. 2022, section 3.1).

    Args:
        memories: what the decoder reads, in that order: by its number (from 0) one of the memories that stages make, or
            None for the output.
        last_stack: composes the layers of the last stage; None for ``stack``.
        global_vectors: number of learned vectors beside each document; layers must be built with the same number.
    """

    def __init__(
        self,
        embedder: Embedder,
        stages: list[Stage],
        stack: Stack,
        structure_of: StructureOf,
        norm: nn.Module | None = None,
        memories: tuple[int | None, ...] = (None,),
        last_stack: Stack | None = None,
        global_vectors: int = 0,
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
        self.structure_of = structure_of
        self.global_vectors = None
        if global_vectors:
            embed_dim = embedder.tokens.embedding_dim
            self.global_vectors = nn.Embedding(global_vectors, embed_dim)
            # As embedded tokens are.
            nn.init.normal_(self.global_vectors.weight, std=embedder.scale * embed_dim**-0.5)
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
            marked: (B, L), True at further global tokens, or None.
        """
        if marked is not None and not any(_reads_marks(layer) for stage in self.all_stages() for layer in stage.layers):
            raise ValueError("`marked` needs attention that reads marks, but no layer has one.")
        lengths = lengths_of(padding_mask) if lengths is None else lengths
        sequence = self._entering(tokens, padding_mask, lengths, marked)
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
            Memory(memory.x, memory.attention_mask, memory.origins, memory.key_bias, memory.unit) for memory in memories
        )
        return Encoded(sequence, pooled, read_by_decoder)

    def _entering(
        self, tokens: Tensor, padding_mask: Tensor, lengths: list[int] | None, marked: Tensor | None
    ) -> Sequence:
        """Return what the first stage reads; arguments as in `forward`."""
        tags = None
        if self.embedder.tags is not None:
            vocabulary = self.embedder.tokens.num_embeddings
            tokens, tags = tokens % vocabulary, tokens // vocabulary
        position = torch.arange(tokens.size(1), device=tokens.device).expand(tokens.shape)
        unit, marks, query = self.structure_of(tokens, padding_mask, marked)
        # What stays inside a unit must not learn how long those before it are.
        place = Units(unit).places if unit is not None and self._restarts_in_units else None
        x = self.embedder(tokens, position=place, tags=tags)
        roles = self._roles(tokens, unit)
        origins = Origins.of_tokens(tokens, padding_mask, x.dtype) if self.tells_origins else None
        sequence = Sequence(x, padding_mask, position, lengths, unit, marks, query, roles, origins)
        if self.global_vectors is None:
            return sequence
        global_vectors = self.global_vectors.weight.to(x.dtype).expand(len(x), -1, -1)
        return sequence._replace(global_vectors=global_vectors)

    @property
    def memory_layers(self) -> tuple[int | None, ...]:
        """The layer (from 0) whose output each of the memories is, None for the output of the encoder."""
        layers = [int(layer) for layer in self.memory_norms]
        return tuple(None if number is None else layers[number] for number in self.memories)

    def _roles(self, tokens: Tensor, unit: Tensor | None) -> Roles | None:
        reads, of = any(cast(Pooler, pooler).reads_roles for pooler in self.poolers.values()), self.structure_of
        if not reads or unit is None or of.marker is None:
            return None
        return Roles(tokens, unit, self.embedder.tokens, of.marker, of.name_end)


def _reads_marks(layer: Layer) -> bool:
    attention = layer.function(SelfAttention)
    return attention is not None and attention.global_rows is not None
