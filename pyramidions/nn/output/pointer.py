"""The output layer that copies tokens of the document, through whatever pools them."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.nn.origins import Copies
from pyramidions.nn.output.core import OUTPUT, Output, TiedOutput, UntiedOutput
from pyramidions.nn.sublayer import Memory

_CLOSED = 1e4  # of a gate that copies nothing


class Pointed(NamedTuple):
    """What a pointer reads of a memory, computed once for all steps.

    Attributes:
        keys: (B, K, D).
        values: (B, K), what the gate reads of each vector.
        padding_mask: (B, K), True at padding; None without.
        copies: what can be copied from each vector.
    """

    keys: Tensor
    values: Tensor
    padding_mask: Tensor | None
    copies: Copies

    def select(self, documents: Tensor) -> "Pointed":
        """Return that of ``documents`` (B',), in that order."""
        mask = None if self.padding_mask is None else self.padding_mask.index_select(0, documents)
        keys, values = (x.index_select(0, documents) for x in (self.keys, self.values))
        return Pointed(keys, values, mask, self.copies.select(documents))


class Pointer(nn.Module):
    """Reads vectors by attention of its own, with one head, and decides between generating and copying.

    Args:
        embed_dim: D.
        start: bias of the gate at first; above 0 it prefers to generate.
    """

    def __init__(self, embed_dim: int, start: float) -> None:
        super().__init__()
        self.query = nn.Linear(embed_dim, embed_dim)
        self.key = nn.Linear(embed_dim, embed_dim)
        self.value = nn.Linear(embed_dim, 1, bias=False)
        self.gate = nn.Linear(embed_dim, 1)
        nn.init.constant_(self.gate.bias, start)

    def point(self, memory: Memory) -> Pointed:
        """Return what is read of a memory.

        Raises:
            ValueError: the memory does not tell which tokens its vectors are made of.
        """
        if memory.origins is None:
            raise ValueError("A pointer must know which tokens the vectors of the memory are made of, but does not.")
        keys, values = self.key(memory.x), self.value(memory.x).squeeze(-1)
        return Pointed(keys, values, memory.padding_mask, Copies.of(memory.origins))

    def read(self, features: Tensor, pointed: Pointed) -> tuple[Tensor, Tensor]:
        """Return how much each vector is read, (B, T, K), and the logit of generating, (B, T, 1), in wide floats."""
        query, gate = self.query(features), self.gate(features)
        with torch.autocast(features.device.type, enabled=False):
            query, keys = _wide(query), _wide(pointed.keys)
            scores = query @ keys.transpose(1, 2) * features.size(-1) ** -0.5
            nothing = pointed.copies.real.sum(dim=1) == 0
            if pointed.padding_mask is not None:
                scores = scores.masked_fill(pointed.padding_mask[:, None], torch.finfo(scores.dtype).min)
            attention = scores.softmax(dim=-1)
            gate = _wide(gate) + attention @ _wide(pointed.values)[..., None]
            return attention, gate.masked_fill(nothing[:, None, None], _CLOSED)


@OUTPUT.register("pointer")
class PointerOutput(Output):
    """Generates a token, or copies one of the document: a pointer-generator (See, Liu and Manning 2017, section 2.2).

    Attention of its own, with one head, points to the vectors of the first memory, and through the poolings to the
    tokens that they are made of. With features h, vectors m and their origins w:

        a = softmax(q(h) . k(m) / sqrt(D)), g = sigmoid(u . h + sum_k a_k v . m_k + b)
        P(y) = g softmax(logits)(y) + (1 - g) sum_k a_k sum_i w_ki [x_i = y]

    What it returns are the logarithms of P, in float32 or wider; a softmax leaves them as they are. Where a document
    has nothing to copy, P is the softmax of the logits.

    Args:
        embed_dim: D.
        vocab_size: V.
        tied: the vocabulary is scored by the token embeddings, as in `tied`; without, by weights of its own.
        start: b at first; P begins close to the softmax of the logits where it is high.
    """

    points = True

    def __init__(self, embed_dim: int, vocab_size: int, tied: bool = True, start: float = 1.0) -> None:
        super().__init__()
        self.vocabulary: Output = TiedOutput() if tied else UntiedOutput(embed_dim, vocab_size)
        self.pointer = Pointer(embed_dim, start)

    def forward(self, features: Tensor, embedding: Tensor, pointed: Pointed | None = None) -> Tensor:
        if pointed is None:
            raise ValueError("A pointer must be given what it points to, but is not.")
        shape = features.shape[:2]
        logits = self.vocabulary(features, embedding)
        # (BW, T, ...) -> (B, WT, ...)
        logits, features = (x.reshape(len(pointed.keys), -1, x.size(-1)) for x in (logits, features))
        attention, gate = self.pointer.read(features, pointed)
        logits = _wide(logits)
        # of log(g softmax(logits)), what all tokens share
        shared = F.logsigmoid(gate) - logits.logsumexp(dim=-1, keepdim=True)
        copied = pointed.copies.copied(attention)
        is_copied = copied > 0
        # (B, WT, U): where nothing is copied, a logarithm would have no gradient
        log_copied = F.logsigmoid(-gate) + copied.masked_fill(~is_copied, 1.0).log()
        columns = pointed.copies.tokens[:, None].expand_as(copied)
        before = logits.gather(2, columns) + shared
        more = (torch.logaddexp(before, log_copied) - before).masked_fill(~is_copied, 0.0)
        return (logits + shared).scatter_add_(2, columns, more).view(*shape, -1)

    def copied(self, features: Tensor, embedding: Tensor, pointed: Pointed, written: Tensor) -> tuple[Tensor, Tensor]:
        """Return how each token of a text was written.

        Args:
            features: (B, T, D), what each of them was predicted from.
            embedding: (V, D), of the vocabulary.
            pointed: what was pointed to.
            written: (B, T), the tokens.

        Returns:
            How much each vector was read, (B, T, K); and how likely each token was copied and not generated, given
            that it was written, (B, T): (1 - g) sum_k a_k sum_i w_ki [x_i = y] / P(y).
        """
        attention, gate = self.pointer.read(features, pointed)
        log_probs = self(features, embedding, pointed).gather(2, written[..., None])
        is_written = pointed.copies.tokens[:, None] == written[..., None]
        copied = (pointed.copies.copied(attention) * is_written).sum(dim=2, keepdim=True)
        return attention, (F.logsigmoid(-gate) + copied.log() - log_probs).exp().squeeze(2)


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))
