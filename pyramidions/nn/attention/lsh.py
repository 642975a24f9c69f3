"""LSH attention: positions meet those whose queries hash alike."""

import torch
import torch.nn.functional as F
from torch import Tensor

from pyramidions.nn.attention.core import ATTENTION, CoreAttention
from pyramidions.nn.attention.local_heads import LocalHeads
from pyramidions.nn.functional.chunking import pad_to_multiple
from pyramidions.nn.functional.dropout import check_probability, drop
from pyramidions.nn.functional.local_window import look_back


@ATTENTION.register("lsh")
class LSHAttention(CoreAttention):
    """Locality-sensitive hashing attention of Reformer (Kitaev et al. 2020, section 2), some heads local instead.

    Queries are hashed by random rotations, positions sorted by bucket and cut into chunks; a chunk attends to itself
    and to the one before it. Keys are the queries at unit length, so that ``k`` is never read, and a position sees
    itself only where it sees nothing else; both hold for local heads, too. Hash rounds are joined by their
    log-sum-exp; a pair that meets in several rounds counts in each, as in the public implementations (the paper
    divides by N_ij in equation 7).

    A document's buckets follow from its own length: an even number, about one per ``bucket_size`` tokens, and a single
    one where all fit in. While training every forward draws new rotations from the device's generator; in evaluation
    they depend on ``seed`` alone.

    Args:
        bucket_size: positions in a chunk, M.
        num_hashes: hash rounds.
        local_heads: heads that attend within a window.
        window: how far those see in either direction.
        seed: where the rotations come from in evaluation.
        dropout: probability of dropping an attention weight while training.

    Raises:
        ValueError: a bucket size, number of rounds or window below 1, or fewer than 0 local heads.
    """

    shares_query_key = True
    crosses = False
    can_be_causal = False
    _COLUMNS = 64  # of a rotation that are drawn, and multiplied with, at a time
    lengths = ("bucket_size", "window")

    def __init__(
        self,
        bucket_size: int = 64,
        num_hashes: int = 4,
        local_heads: int = 2,
        window: int = 128,
        seed: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if bucket_size < 1:
            raise ValueError(f"`bucket_size` must be at least 1, but is {bucket_size}.")
        if num_hashes < 1:
            raise ValueError(f"`num_hashes` must be at least 1, but is {num_hashes}.")
        self.bucket_size = bucket_size
        self.num_hashes = num_hashes
        self.local = LocalHeads(local_heads, window, dropout, see_themselves=False)
        self.seed = seed
        self.dropout = check_probability("dropout", dropout)

    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, key_padding_mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        self.refuse(q, k, is_causal)
        k = F.normalize(q.float(), dim=-1, eps=1e-6).to(q.dtype)
        return self.local.beside(self._hashed, q, k, v, key_padding_mask)

    def rotations(self, head_dim: int, columns: int, device: torch.device) -> Tensor:
        """Return the random matrices that queries are hashed with, one per round: (num_hashes, E, columns).

        In evaluation more columns begin with the same ones, whatever the device: drawn piece by piece on the CPU.
        """
        shape = (self.num_hashes, head_dim)
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
        # half the buckets of each document, one per column of the rotation; none where there is a single bucket
        columns = torch.where(real > self.bucket_size, -(-real // (2 * self.bucket_size)), 0)
        rotations = self.rotations(q.size(-1), -(-length // (2 * self.bucket_size)), q.device)
        # Where no document can have a second bucket, all rounds are alike.
        rounds = self.num_hashes if length > self.bucket_size else 1
        # Padding comes last in every order.
        padded = torch.arange(q.size(2), device=q.device) >= real[:, None]

        outputs, totals = [], []
        for rotation in rotations[:rounds]:
            buckets = self._buckets(q, rotation, columns)
            # (B, H, L), what is n-th; a stable sort keeps a bucket in the order of the text
            order = buckets.masked_fill(padding_mask[:, None], q.size(2)).argsort(dim=-1, stable=True)
            alike = _take(q, order), _take(k, order), _take(v, order)
            out, total = _attend_chunks(*alike, padded, size, self.dropout if self.training else 0.0)
            where = order.argsort(dim=-1)
            outputs.append(_take(out, where))
            totals.append(_take(total, where))
        # (R, B, H, L, 1), over the rounds
        weights = torch.stack(totals).softmax(dim=0)
        return (weights * torch.stack(outputs)).sum(dim=0)[:, :, :length].to(dtype)

    def _buckets(self, x: Tensor, rotation: Tensor, columns: Tensor) -> Tensor:
        """Return argmax([xR; -xR]) over the first ``columns`` (B,) of ``rotation`` (E, N): (B, H, L, E) -> (B, H, L).

        Rounding must not decide between buckets: always in full precision. Memory does not grow with N.
        """
        columns = columns[:, None, None]
        with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
            x = x.float()
            farthest = x.new_full(x.shape[:-1], -1.0)
            buckets = torch.zeros(x.shape[:-1], dtype=torch.long, device=x.device)
            for start in range(0, rotation.size(-1), self._COLUMNS):
                # (B, H, L, E) @ (E, 64) -> (B, H, L, 64)
                turned = x @ rotation[:, start : start + self._COLUMNS]
                absent = torch.arange(start, start + turned.size(-1), device=x.device) >= columns[..., None]
                far, column = turned.abs().masked_fill(absent, -1.0).max(dim=-1)
                opposite = turned.gather(-1, column[..., None]).squeeze(-1) < 0
                buckets = torch.where(far > farthest, start + column + opposite * columns, buckets)
                farthest = torch.maximum(far, farthest)
        return buckets


def _take(x: Tensor, index: Tensor) -> Tensor:
    # (B, H, L, E), (B, H, L) -> (B, H, L, E)
    return x.gather(2, index[..., None].expand_as(x))


def _attend_chunks(
    q: Tensor, k: Tensor, v: Tensor, padding_mask: Tensor, size: int, dropout: float
) -> tuple[Tensor, Tensor]:
    """Attend from chunks of ``size`` positions to themselves and the one before.

    Returns:
        (B, H, L, E) mixed values, and (B, H, L, 1) the log-sum-exp of the scores.
    """
    lowest = torch.finfo(torch.float32).min
    # (B, H, L, E) -> (B, H, C, M, E)
    queries, keys, values = (x.unflatten(2, (-1, size)) for x in (q, k, v))
    # (B, L) -> (B, 1, C, M, 1)
    blocked = padding_mask.unflatten(1, (-1, size))[:, None, ..., None]
    own = torch.eye(size, dtype=torch.bool, device=q.device)
    if q.size(2) > size:
        # (B, H, C, M, .) -> (B, H, C, 2M, .); (M, M) -> (M, 2M)
        keys, values, blocked = look_back(keys), look_back(values), look_back(blocked, value=True)
        own = F.pad(own, (size, 0))
    # (B, H, C, M, E) @ (B, H, C, E, 2M) -> (B, H, C, M, 2M)
    scores = (queries @ keys.transpose(-1, -2)).float()
    # Its own position comes after every other, padding after that; finite, for both may be all there is.
    scores = scores.masked_fill(own, lowest / 2).masked_fill(blocked.transpose(-1, -2), lowest)
    weights = drop(scores.softmax(dim=-1), dropout)
    out = weights.to(values.dtype) @ values
    # (B, H, C, M, .) -> (B, H, L, .)
    return out.flatten(2, 3), scores.logsumexp(dim=-1, keepdim=True).flatten(2, 3)
