"""Parts built by hand, without a config: tiny, and with the same weights each time."""

from typing import Any

import torch
from torch import Tensor

from pyramidions.nn.attention import ATTENTION, CrossAttention, SelfAttention
from pyramidions.nn.feed_forward import DenseFeedForward
from pyramidions.nn.layer import Layer, Sublayer
from pyramidions.nn.projections import PROJECTIONS
from pyramidions.nn.recurrence import SRURecurrence
from pyramidions.nn.sublayer import SublayerFunction

DIM, HEADS, WIDTH, VOCABULARY = 8, 2, 16, 20
#: what the model offers each part
SETTING: dict[str, Any] = {
    "embed_dim": DIM,
    "num_heads": HEADS,
    "head_dim": DIM // HEADS,
    "ffn_embed_dim": WIDTH,
    "vocab_size": VOCABULARY,
    "activation_dropout": 0.0,
}
#: what a layer of a decoder is made of
DECODING = ("self_attention", "cross_attention", "feed_forward")


def function(
    name: str,
    kind: str = "full",
    *,
    projections: str = "dense",
    is_causal: bool = False,
    dropout: float = 0.0,
    **options: Any,
) -> SublayerFunction:
    """Return what a sublayer of that name computes; ``kind`` and ``options`` are those of attention."""
    if name == "feed_forward":
        return DenseFeedForward(DIM, WIDTH, activation_dropout=dropout)
    crosses = name.startswith("cross_attention")
    given = {**SETTING, "shares_query_key": ATTENTION[kind].shares_query_key, "crosses": crosses}
    projected = PROJECTIONS.build(projections, {}, **given)
    attention = ATTENTION.build(kind, options, **SETTING, dropout=dropout)
    if crosses:
        # "cross_attention_2" reads the second memory.
        _, _, number = name.partition("cross_attention_")
        return CrossAttention(projected, attention, int(number or 1) - 1)
    return SelfAttention(projected, attention, is_causal)


def layer(
    *names: str,
    projections: str = "dense",
    dropout: float = 0.0,
    normalize_before: bool = False,
    is_causal: bool = False,
    recurs: bool = False,
    **options: Any,
) -> Layer:
    """Return a layer with sublayers of these names; without any, one of an encoder.

    With ``recurs`` there is a recurrence beside its feed-forward part.
    """
    names = names or ("self_attention", "feed_forward")
    of_self = {"is_causal": is_causal, **options}
    functions = {
        name: function(
            name, projections=projections, dropout=dropout, **(of_self if name.startswith("self_attention") else {})
        )
        for name in names
    }
    beside = {"feed_forward": SRURecurrence(DIM, 3)} if recurs else {}
    sublayers = {
        name: Sublayer(made, DIM, dropout, normalize_before, beside.get(name)) for name, made in functions.items()
    }
    made = Layer(sublayers)
    with torch.no_grad():
        for weight in made.parameters():
            # Neither biases of 0 nor norms of scale 1 hide a mistake.
            weight.add_(torch.randn_like(weight), alpha=0.1)
    return made


def vectors(*shape: int, seed: int = 0) -> Tensor:
    """Return normal values on the default device."""
    return torch.randn(*shape, generator=torch.Generator(torch.get_default_device()).manual_seed(seed))


def ends_after(*lengths: int, width: int | None = None) -> Tensor:
    """Return the padding mask of documents of these lengths: (B, L)."""
    return torch.arange(width or max(lengths)) >= torch.tensor(lengths)[:, None]


def token_rows(*lengths: int, vocabulary: int = 40, seed: int = 1) -> Tensor:
    """Return documents of random tokens, of these lengths and padded on the right: (B, L)."""
    tokens = torch.randint(4, vocabulary, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(seed))
    return tokens.masked_fill(ends_after(*lengths), 1)
