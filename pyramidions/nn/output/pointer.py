"""The output layer that copies tokens of the document, through whatever pools them."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pyramidions.base.arguments import CountOrZero
from pyramidions.nn.functional.precision import full_precision
from pyramidions.nn.output.vocabulary import OUTPUT, Output, TiedOutput, UntiedOutput
from pyramidions.nn.provenance import Origins
from pyramidions.nn.sublayer import Memory

_CONTEXT = 2  # tokens that a query looks for: the one to be copied, and the one before it
_ONLY_GENERATES = 1e4  # logit of a gate that copies nothing
_FEW = 8  # queries of a document, as measured
_LINEAR = 40.0  # from where log(1 + exp(x)) is x, also in float64


class PointerMemory(NamedTuple):
    """What a pointer reads of a memory, computed once for all steps."""

    keys: Tensor  # (B, K, D)
    values: Tensor  # (B, K), what the gate reads of each vector
    token_keys: Tensor | None  # (B, U, d), of the different tokens of the document; None where vectors alone are read
    padding_mask: Tensor | None  # (B, K), True at padding; None without
    origins: Origins  # which tokens can be copied from each vector
    key_bias: Tensor | None = None  # (B, K), what is added to the scores of each vector; None for nothing

    def select(self, documents: Tensor) -> "PointerMemory":
        """Return that of ``documents`` (B',), in that order."""
        mask, bias = (None if x is None else x.index_select(0, documents) for x in (self.padding_mask, self.key_bias))
        keys, values = (x.index_select(0, documents) for x in (self.keys, self.values))
        tokens = None if self.token_keys is None else self.token_keys.index_select(0, documents)
        return PointerMemory(keys, values, tokens, mask, self.origins.select(documents), bias)


class Pointer(nn.Module):
    """Reads vectors, and the tokens in them, and decides between generating and copying.

    The bias of the gate is ``start`` at first; above 0 it prefers to generate. Keys of tokens have ``token_dim``
    numbers.
    """

    def __init__(self, embed_dim: int, start: float, token_dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(embed_dim, embed_dim)
        self.key = nn.Linear(embed_dim, embed_dim)
        self.value = nn.Linear(embed_dim, 1, bias=False)
        self.gate = nn.Linear(embed_dim, 1)
        narrow = min(embed_dim, token_dim)
        self.token_query = nn.Linear(embed_dim, _CONTEXT * narrow) if narrow else None
        self.token_key = nn.Linear(embed_dim, narrow, bias=False) if narrow else None
        nn.init.constant_(self.gate.bias, start)

    def keys_values(self, memory: Memory, embedding: Tensor) -> PointerMemory:
        """Return what is read of a memory, given the embedding (V, D); ValueError if it does not tell its tokens."""
        origins = memory.origins
        if origins is None:
            raise ValueError("A pointer must know which tokens the vectors of the memory are made of, but does not.")
        keys, values = self.key(memory.x), self.value(memory.x).squeeze(-1)
        token_keys = None
        if self.token_key is not None:
            # Models scale their embeddings differently.
            token_keys = self.token_key(F.layer_norm(F.embedding(origins.tokens, embedding), embedding.shape[1:]))
        return PointerMemory(keys, values, token_keys, memory.padding_mask, origins, memory.key_bias)

    def forward(self, features: Tensor, memory: PointerMemory) -> tuple[Tensor, Tensor]:
        """Return how much each token is pointed to, and the logit of generating, both in float32 or wider.

        (B, T, D) -> (B, T, L), whose rows sum to 1, and (B, T, 1).
        """
        _, reached, gate = self.read(features, memory)
        if self.token_query is None or memory.token_keys is None:
            return reached, gate
        token_query = self.token_query(features)
        with torch.autocast(features.device.type, enabled=False):
            scores = _log(reached)
            for before, each in enumerate(token_query.chunk(_CONTEXT, dim=-1)):
                # of the token so many places before each; the first ones have none
                of_tokens = token_scores(each, memory)
                scores = scores + F.pad(of_tokens, (before, 0))[..., : of_tokens.size(2)]
            return scores.masked_fill(reached == 0, torch.finfo(scores.dtype).min).softmax(dim=-1), gate

    def read(self, features: Tensor, memory: PointerMemory) -> tuple[Tensor, Tensor, Tensor]:
        """Return how much each vector is pointed to, (B, T, K), each token by that alone, (B, T, L), and the gate."""
        query, gate = self.query(features), self.gate(features)
        with torch.autocast(features.device.type, enabled=False):
            scores = _scores(query, memory.keys)
            if memory.key_bias is not None:
                scores = scores + memory.key_bias[:, None]
            if memory.padding_mask is not None:
                scores = scores.masked_fill(memory.padding_mask[:, None], torch.finfo(scores.dtype).min)
            attention = scores.softmax(dim=-1)
            gate = full_precision(gate) + attention @ full_precision(memory.values)[..., None]
            reached = memory.origins.made_of.of(attention)
            return attention, reached, gate.masked_fill(reached.amax(dim=-1, keepdim=True) == 0, _ONLY_GENERATES)


@OUTPUT.register("pointer")
class PointerOutput(Output):
    """Generates a token, or copies one of the document: a pointer-generator (See, Liu and Manning 2017, section 2.2).

    Attention of its own, with one head, points to the vectors m of the first memory, and through the poolings to the
    tokens that they are made of. A second head chooses among these tokens by their normalised embeddings e, and by
    those of the tokens before them, so that it finds where the document goes on from what was written. It keeps a
    key of each different token. With features h, tokens x, and how much w_ki of each is in each vector:

        a = softmax(q(h) . k(m) / sqrt(D)), g = sigmoid(u . h + sum_k a_k v . m_k + b)
        s_i = (q'(h) . k'(e(x_i)) + q"(h) . k'(e(x_{i-1}))) / sqrt(d)
        c_i = sum_k a_k w_ki exp(s_i), divided by its sum over i
        P(y) = g softmax(logits)(y) + (1 - g) sum_i c_i [x_i = y]

    So a scorer learns from what is copied: what it does not hand on cannot be. Unlike in the paper, attention is not
    that of a decoder layer, and the gate does not read the decoder's input. The output is log P, in float32 or wider; a
    log-softmax leaves it unchanged. Where a document has nothing to copy, P is the softmax of the logits.

    Args:
        tied: the vocabulary is scored by the token embeddings, as in `tied`; without, by weights of its own.
        start: b at first; P begins close to the softmax of the logits where it is high.
        token_dim: d, at most the model's width; 0 leaves the second head out: s_i is 0.
    """

    points = True

    def __init__(
        self,
        embed_dim: int,
        vocab_size: int,
        tied: bool = True,
        start: float = 1.0,
        token_dim: CountOrZero = 64,
    ) -> None:
        super().__init__()
        self.vocabulary: Output = TiedOutput() if tied else UntiedOutput(embed_dim, vocab_size)
        self.pointer = Pointer(embed_dim, start, token_dim)

    def prepare(self, memories: tuple[Memory, ...], embedding: Tensor) -> PointerMemory:
        """Return what is read of the first memory; raise ValueError if it does not tell its tokens."""
        if not memories:
            raise ValueError("A pointer must be given the memories that the decoder reads, but is not.")
        return self.pointer.keys_values(memories[0], embedding)

    def forward(self, features: Tensor, embedding: Tensor, prepared: PointerMemory | None = None) -> Tensor:
        if prepared is None:
            raise ValueError("A pointer must be given what `prepare` returns, but is not.")
        shape = features.shape[:2]
        logits = self.vocabulary(features, embedding)
        # (BW, T, ...) -> (B, WT, ...)
        logits, features = (x.reshape(len(prepared.keys), -1, x.size(-1)) for x in (logits, features))
        pointed, gate = self.pointer(features, prepared)
        log_generated = full_precision(logits).log_softmax(dim=-1)
        # (B, WT, U)
        copied = prepared.origins.by_token(pointed)
        columns = prepared.origins.tokens[:, None].expand_as(copied)
        # log((1 - g) / g) is -gate
        log_ratio = _log(copied) - gate - log_generated.gather(2, columns)
        more = F.softplus(log_ratio, threshold=_LINEAR).masked_fill(copied == 0, 0.0)
        # Steps of decoding make no second tensor of that size.
        place = None if torch.is_grad_enabled() else log_generated
        log_probs = torch.add(log_generated, F.logsigmoid(gate), out=place)
        return log_probs.scatter_add_(2, columns, more).view(*shape, -1)

    def copied(self, features: Tensor, prepared: PointerMemory, written: Tensor, log_probs: Tensor) -> Tensor:
        """Tell how likely each token of a text was copied from each of the document, given that it was written.

        From features (B, T, D), the tokens ``written`` (B, T), and the logarithm of P of each: (B, T, L),
        (1 - g) c_i [x_i = y] / P(y). Rows sum to how likely a token was copied at all.
        """
        pointed, gate = self.pointer(features, prepared)
        tokens = prepared.origins.tokens.gather(1, prepared.origins.places)
        pointed = pointed * (tokens[:, None] == written[..., None])
        return pointed * (F.logsigmoid(-gate) - log_probs[..., None]).exp()


def _scores(query: Tensor, keys: Tensor) -> Tensor:
    """Score keys (B, K, D) by queries (B, T, D), in float32 or wider: (B, T, K)."""
    query, keys = full_precision(query) * query.size(-1) ** -0.5, full_precision(keys)
    if len(keys) > 1 and query.size(1) <= _FEW:
        # A CPU reads long matrices from the left faster.
        return (keys @ query.mT).mT
    return query @ keys.mT


def token_scores(query: Tensor, memory: PointerMemory) -> Tensor:
    """Score each token of the document by queries (B, T, d): (B, T, L). Its memory must have token keys."""
    assert memory.token_keys is not None
    scores = _scores(query, memory.token_keys)
    return scores.gather(2, memory.origins.places[:, None].expand(-1, scores.size(1), -1))


def _log(shares: Tensor) -> Tensor:
    """Return the logarithm of shares; a finite one, without a gradient, where there is none."""
    return shares.clamp(min=torch.finfo(shares.dtype).tiny).log()
