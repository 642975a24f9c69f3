"""LSH attention: positions meet those whose queries hash alike."""

import math
from functools import partial
from typing import Annotated, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.base.arguments import Count, CountOrZero, EveryOther, Range
from pyramidions.nn.attention.core_attention import ATTENTION, CoreAttention, Feature
from pyramidions.nn.attention.local_heads import LocalHeads
from pyramidions.nn.attention.state import HashedKeysValues
from pyramidions.nn.functional.buckets import attend, chunk_attention, joined, recent_attention, take, times_seen
from pyramidions.nn.functional.chunking import pad_to_multiple
from pyramidions.nn.functional.masking import padding_of
from pyramidions.nn.functional.replay import replayed
from pyramidions.nn.options import Length, Probability, Window
from pyramidions.nn.sublayer import NO_CONTEXT, LayerContext, State

_LAST = 2**31 - 1  # comes after all buckets
_LONGEST = 1024  # where no length is known


@ATTENTION.register("lsh")
class LSHAttention(CoreAttention):
    """Locality-sensitive hashing attention of Reformer (Kitaev et al. 2020, section 2), some heads local instead.

    Queries are hashed by random rotations, positions sorted by bucket and cut into chunks; a chunk attends to itself
    and to the one before it. Keys are the queries at unit length, so that ``k`` is never read, and scores are not
    divided by sqrt(E) again. A position sees itself only where it sees nothing else. Both hold for local heads, too.
    Hash rounds are joined by their log-sum-exp; a pair that meets in several rounds counts in each, as in the public
    implementations (the paper divides by N_ij in equation 7).

    A document's buckets follow from its own length, unless ``num_buckets`` says how many there are: an even number,
    about two per chunk, and a single one where all positions fit into a chunk. While training every forward draws new
    rotations from the device's generator; in evaluation they depend on ``seed`` alone.

    Two smaller hashes may make one (``hash_factors``), as in the public implementations: a bucket's number is that by
    the first, times the buckets of the second, plus that by the second. Then hashing multiplies with about the square
    root of the number of buckets, not with half of it.

    Causal, there are no chunks, whose borders would depend on what comes later: in each round a position sees the
    ``bucket_size`` positions before it in its bucket, and in a local head those within the window before it. There are
    as many buckets from the first position on: those of the longest text.

    Args:
        bucket_size: positions in a chunk, M.
        num_hashes: hash rounds.
        local_heads: heads that attend within a window.
        local_window: positions on both sides together that those see, half of them on each.
        num_buckets: buckets of a round, an even number; None to derive it from the length.
        chunk_buckets: buckets per chunk where they follow from the length; releases up to 0.2.0 had 1.
        chunks_after: chunks after its own that a chunk attends to, 0 or 1; 1 in the encoder of the Terraformer.
        hash_factors: 1, or 2 for two smaller hashes, whose numbers of buckets are even and multiply to that many or a
            few more.
        is_flat: divide scores by sqrt(E) once more, as releases up to 0.2.0 did.
        max_length: positions of the longest text; None for 1,024, as in language models, whose texts have no longest.
        seed: where the rotations come from in evaluation.
    """

    shares_query_key = True
    supports = frozenset({Feature.ITSELF, Feature.CAUSAL, Feature.STEPS})
    narrow: ClassVar = {"bucket_size": 2, "num_buckets": 2, "num_hashes": 2, "local_heads": 1, "local_window": 4}
    is_exact = False
    _COLUMNS = 64  # of a rotation that are drawn, and multiplied with, at a time

    def __init__(
        self,
        bucket_size: Length = 64,
        num_hashes: Count = 4,
        local_heads: CountOrZero = 2,
        local_window: Window = 256,
        num_buckets: Annotated[int, EveryOther(2)] | None = None,
        chunk_buckets: Count = 2,
        chunks_after: Annotated[int, Range(0, 1)] = 0,
        hash_factors: Annotated[int, Range(1, 2)] = 1,
        is_flat: bool = False,
        max_length: int | None = None,
        seed: int = 1,
        dropout: Probability = 0.0,
    ) -> None:
        super().__init__()
        self.bucket_size = bucket_size
        self.hash_factors = hash_factors
        self.num_hashes = num_hashes
        self.num_buckets = num_buckets
        self.chunk_buckets = chunk_buckets
        self.chunks_after = chunks_after
        self.is_flat = is_flat
        self.max_length = max_length or _LONGEST
        self.local = LocalHeads(local_heads, local_window, dropout, see_themselves=False)
        self.seed = seed
        self.dropout = dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor, context: LayerContext = NO_CONTEXT) -> Tensor:
        self.refuse(q, k, context)
        k = self._keys(q)
        if context.is_causal:
            return self._causal(q, k, v, padding_of(k, context.padding_mask))
        return self.local.beside(self._hashed, q, k, v, context.padding_mask)

    def new_state(self) -> State:
        return HashedKeysValues()

    def step(self, q: Tensor, k: Tensor, v: Tensor, blocked: Tensor | None, state: State) -> Tensor:
        assert isinstance(state, HashedKeysValues)
        if state.rotations is None:
            state.rotations = self._of_rounds(q, self._half(self.max_length))
        local = min(self.local.count, q.size(1))
        k, v, buckets = state.extend(self._keys(q), v, self._rounds(q[:, local:], state.rotations))
        if blocked is None:
            visible = torch.ones(1, 1, 1, k.size(2), dtype=torch.bool, device=q.device)
        else:
            visible = blocked.eq(0.0)
        # Local heads have a single bucket.
        near = times_seen(buckets.new_zeros(len(k), local, k.size(2), 1), visible, self.local.side)
        times = torch.cat([near, times_seen(buckets, visible, self.bucket_size)], dim=1)
        own = torch.eye(k.size(2), dtype=torch.bool, device=q.device)[-q.size(2) :]
        # A key that several rounds show counts in each.
        bias = times.clamp(min=1).log()
        return attend(q, k / q.size(-1) ** 0.5, v, own, times.eq(0) & ~own, self.dropped, bias)[0]

    def rotations(self, head_dim: int, columns: int, device: torch.device) -> Tensor:
        """Return the random matrices that queries are hashed with: (num_hashes * hash_factors, E, columns).

        Those of a round stand together. In evaluation more columns begin with the same ones, whatever the device: drawn
        piece by piece on the CPU.
        """
        shape = (self.num_hashes * self.hash_factors, head_dim)
        if self.training:
            return torch.randn(*shape, columns, device=device, dtype=torch.float32)
        generator = torch.Generator().manual_seed(self.seed)
        pieces = [
            torch.randn(*shape, self._COLUMNS, generator=generator, device="cpu", dtype=torch.float32)
            for _ in range(0, max(columns, 1), self._COLUMNS)
        ]
        return torch.cat(pieces, dim=-1)[..., :columns].to(device)

    def _hashed(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor) -> Tensor:
        length, dtype = q.size(2), v.dtype
        size = min(self.bucket_size, length)
        q, k, v = (pad_to_multiple(x, size, dim=2) for x in (q, k / q.size(-1) ** 0.5, v))
        padding_mask = pad_to_multiple(padding_mask, size, dim=1, value=True)

        real = (~padding_mask).sum(dim=1)
        # half the buckets of each document; none where there is a single one
        most, half = self._half(length), real.new_full(real.shape, self._half(length))
        if self.num_buckets is None:
            half = -(-self.chunk_buckets * real // (2 * self.bucket_size))
        columns = self._columns(torch.where(real > self.bucket_size, half, 0))
        rotations = self._of_rounds(q, most)
        # Where no document can have a second bucket, all rounds are alike.
        rounds = self.num_hashes if length > self.bucket_size else 1
        # Padding comes last in every order.
        padded = torch.arange(q.size(2), device=q.device) >= real[:, None]

        outputs, totals = [], []
        for rotation in rotations[:rounds]:
            buckets = self._buckets(q, rotation, columns)
            # (B, H, L), what is n-th; a stable sort keeps a bucket in the order of the text
            order = buckets.masked_fill(padding_mask[:, None], _LAST).argsort(dim=-1, stable=True)
            alike = take(q, order), take(k, order), take(v, order)
            out, total = chunk_attention(*alike, padded, size, self.dropped, self.chunks_after)
            where = order.argsort(dim=-1)
            outputs.append(take(out, where))
            totals.append(take(total, where))
        return joined(outputs, totals)[:, :, :length].to(dtype)

    def _causal(self, q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor) -> Tensor:
        local, parts = min(self.local.count, q.size(1)), []
        # Padding has a bucket of its own: no other position sees it, or counts it.
        padded = padding_mask[:, None]
        if local:
            near = q[:, :local], k[:, :local], v[:, :local]
            together = padded.long().expand(-1, local, -1)
            parts.append(recent_attention(*near, together, self.local.side, self.dropped)[0])
        if local < q.size(1):
            q, k, v = q[:, local:], k[:, local:], v[:, local:]
            rounds = self._rounds(q, self._of_rounds(q, self._half(self.max_length)))
            buckets = rounds.masked_fill(padded[..., None], _LAST).unbind(dim=-1)
            by_round = [recent_attention(q, k, v, of_round, self.bucket_size, self.dropped) for of_round in buckets]
            parts.append(joined(*zip(*by_round, strict=True)).to(v.dtype))
        return torch.cat(parts, dim=1)

    def _keys(self, q: Tensor) -> Tensor:
        """Return the queries at length sqrt(E), which the division of all scores by sqrt(E) brings to 1."""
        keys = F.normalize(q.float(), dim=-1, eps=1e-6)
        return (keys if self.is_flat else keys * q.size(-1) ** 0.5).to(q.dtype)

    def _half(self, length: int) -> int:
        """Half the buckets of ``length`` positions."""
        if self.num_buckets is None:
            return -(-self.chunk_buckets * length // (2 * self.bucket_size))
        return self.num_buckets // 2

    def _rounds(self, x: Tensor, rotations: Tensor) -> Tensor:
        """Return the buckets of causal attention by the rotations of all rounds: (B, H, L, E) -> (B, H, L, R)."""
        columns = self._columns(torch.full((len(x),), self._half(self.max_length), device=x.device))
        return torch.stack([self._buckets(x, rotation, columns) for rotation in rotations], dim=-1)

    def _of_rounds(self, x: Tensor, half: int) -> Tensor:
        """Return the rotations of all rounds, for at most twice ``half`` buckets of ``x``: (R, F, E, N)."""
        # Of two factors the first is the larger.
        columns = half if self.hash_factors == 1 else math.isqrt((half - 1) // 2) + 1
        return self.rotations(x.size(-1), columns, x.device).unflatten(0, (-1, self.hash_factors))

    def _columns(self, half: Tensor) -> Tensor:
        """Return how many columns of its rotation each factor reads, (F, B), for twice ``half`` (B,) buckets."""
        if self.hash_factors == 1:
            return half[None]
        first = (half.double() / 2).sqrt().ceil().long()
        rest = -(-half // (2 * first.clamp(min=1)))
        return torch.stack([first, torch.where(first < half, rest, 0)])

    def _buckets(self, x: Tensor, rotations: Tensor, columns: Tensor) -> Tensor:
        """Return the buckets of a round, as `_hash`, and in a recomputation those of the forward pass."""
        # Two a column, of each factor.
        return replayed(partial(self._hash, x, rotations, columns), (2 * rotations.size(-1)) ** len(rotations))

    def _hash(self, x: Tensor, rotations: Tensor, columns: Tensor) -> Tensor:
        buckets = torch.zeros(x.shape[:-1], dtype=torch.long, device=x.device)
        for rotation, of_factor in zip(rotations, columns[..., None, None], strict=True):
            buckets = buckets * (2 * of_factor).clamp(min=1) + self._nearest(x, rotation, of_factor)
        return buckets

    def _nearest(self, x: Tensor, rotation: Tensor, columns: Tensor) -> Tensor:
        """Return argmax([xR; -xR]) over the first ``columns`` (B, 1, 1) of ``rotation`` (E, N): (B, H, L).

        Rounding must not decide between buckets: always in full precision. Memory does not grow with N.
        """
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            x = x.float()
            farthest = x.new_full(x.shape[:-1], -1.0)
            nearest = torch.zeros(x.shape[:-1], dtype=torch.long, device=x.device)
            for start in range(0, rotation.size(-1), self._COLUMNS):
                # (B, H, L, E) @ (E, 64) -> (B, H, L, 64)
                turned = x @ rotation[:, start : start + self._COLUMNS]
                absent = torch.arange(start, start + turned.size(-1), device=x.device) >= columns[..., None]
                far, column = turned.abs().masked_fill(absent, -1.0).max(dim=-1)
                opposite = turned.gather(-1, column[..., None]).squeeze(-1) < 0
                nearest = torch.where(far > farthest, start + column + opposite * columns, nearest)
                farthest = torch.maximum(far, farthest)
        return nearest
