"""Tiny whole models of every combination of parts, and the few calls by which contract tests reach inside."""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pyramidions.base.notation import Part, written
from pyramidions.base.registry import Registry
from pyramidions.models import build, preset
from pyramidions.nn import Transformer
from pyramidions.nn.attention import ATTENTION, Feature, supporting
from pyramidions.nn.feed_forward import FEED_FORWARD
from pyramidions.nn.pooling import POOLING
from pyramidions.nn.scorer import SCORER
from pyramidions.nn.sublayer import Memory

VOCABULARY, LONGEST, PAD, MARKER = 20, 24, 1, 4

# Fields whose kinds cut a document of LONGEST tokens by their narrow options
_NARROWED: dict[str, Registry[Any]] = {
    "self_attention": ATTENTION,
    "cross_attention": ATTENTION,
    "decoder_self_attention": ATTENTION,
    "feed_forward": FEED_FORWARD,
}
_LENGTHS = {"funnel": "12,None,None"}
#: attention by which an encoder may read a document
READS_ITSELF = supporting(Feature.ITSELF)
#: ways to stack layers, by name: the fields that they set
STACKS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": {"normalize_before": True},
    "recomputed": {"checkpoint_activations": True},
    "reversible": {"stack": "reversible", "normalize_before": True},
}


def refused(attention: str, pooling: str) -> bool:
    """Say whether attention cannot go together with a pooling, for what either of them does not support."""
    if pooling == "none":
        return False
    features, pooler = ATTENTION[attention].supports, POOLING[pooling]
    loses_units = not pooler.has_provenance or pooler.reads_units
    return (
        (pooler.takes_layer and Feature.ACROSS not in features)
        or (pooler.biases_keys and Feature.KEY_BIAS not in features)
        or (loses_units and Feature.UNITS in features)
    )


Combination = tuple[str, str, str]  # attention, pooling ("none", too), scorer


def combinations() -> list[Combination]:
    """Return all that can go together: attention with pooling by the default scorer, and with scorers."""
    pooled = itertools.product(READS_ITSELF, ["none", *POOLING.names], ["linear"])
    scored = itertools.product(READS_ITSELF, ["soft_topk", "hard_topk"], set(SCORER.names) - {"linear"})
    return [
        (attention, pooling, scorer)
        for attention, pooling, scorer in sorted([*pooled, *scored])
        if not refused(attention, pooling)
        and (not SCORER[scorer].reads_attention or Feature.RECEIVED in ATTENTION[attention].supports)
    ]


def tiny(attention: str = "full", pooling: str = "none", scorer: str = "linear", **overrides: Any) -> Transformer:
    """Build a model without dropout whose weights are the same each time."""
    pools = {} if pooling == "none" else {"pooling": pooling, "pooling_lengths": _LENGTHS.get(pooling, "12,None,6")}
    fields: dict[str, Any] = {
        "embed_dim": 8,
        "ffn_embed_dim": 16,
        "num_heads": 2,
        "encoder_layers": 3,
        "decoder_layers": 2,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "max_source_positions": LONGEST,
        "self_attention": attention,
        "scorer": scorer,
        **pools,
        **overrides,
    }
    for name, registry in _NARROWED.items():
        if fields.get(name) in registry.names:
            fields[name] = written(Part(fields[name], registry[fields[name]].narrow))
    torch.manual_seed(0)
    return build(preset("vanilla", **fields), VOCABULARY, PAD, MARKER)


def batch(*lengths: int, seed: int = 0) -> Tensor:
    """Documents of these lengths, their end included, padded on the right: (B, L).

    The first three tokens of those with more than seven are a query.
    """
    generator = torch.Generator(torch.get_default_device()).manual_seed(seed)
    tokens = torch.randint(4, VOCABULARY, (len(lengths), max(lengths)), generator=generator)
    tokens[:, ::3] = MARKER
    for row, length in enumerate(lengths):
        if length > 7:
            tokens[row, 2] = 2
        tokens[row, length - 1] = 2
        tokens[row, length:] = PAD
    return tokens


def encode(model: Transformer, tokens: Tensor, lengths: Sequence[int] | None = None) -> tuple[Tensor, Tensor]:
    """Return the memory (B, K, D) and its padding mask (B, K)."""
    encoded = model.encoder(tokens, tokens.eq(PAD), lengths)
    return encoded.sequence.x, encoded.sequence.padding_mask


def decode(model: Transformer, tokens: Tensor, memory: Tensor, mask: Tensor | None, cache: Any = None) -> Tensor:
    """Return logits after each of ``tokens`` (BW, T), which follow those of ``cache``: (BW, T, V)."""
    return model.decoder(tokens, (Memory(memory, mask),), cache)


def documents(memory: Tensor, mask: Tensor) -> list[Tensor]:
    """What of each document is no padding: B tensors (K, D)."""
    return [one[~padding] for one, padding in zip(memory, mask, strict=True)]
