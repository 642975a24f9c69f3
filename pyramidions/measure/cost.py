"""Multiplications of a forward pass and parameters of a model, in closed form."""

from collections import Counter
from typing import NamedTuple, cast

from pyramidions.measure.kinds import (
    ATTENTION_PRODUCTS,
    FEED_FORWARD_FORMS,
    POOLING_FORMS,
    SCORER_FORMS,
    closed_form,
)
from pyramidions.measure.shapes import LayerRun, Lengths, Part, PoolerRun, encoder_runs, memory_length, outline
from pyramidions.models import PyramidionConfig
from pyramidions.models.fields import parse_pooling_lengths
from pyramidions.nn import Decoder
from pyramidions.nn.attention import ATTENTION, CrossAttention, SelfAttention
from pyramidions.nn.layer import Layer
from pyramidions.nn.pooling import POOLING


class Multiplications(NamedTuple):
    """Multiplications of one forward pass as in training: every target token at once, no cache.

    A training step is commonly taken for three times as many; PoWER's scorer, which has no gradient, costs less.
    Causal attention is counted as it is computed without a fused kernel: whole, with half of it masked.

    Attributes:
        products: in matrix products, by part, exactly.
        weighted: of pooling, outside of matrix products: a vector's dimensions times its weight.
    """

    products: dict[Part, int]
    weighted: int

    def by_part(self) -> dict[Part, int]:
        """Return all of them by part, those of pooling together."""
        return {**self.products, Part.POOLING: self.products[Part.POOLING] + self.weighted}

    def total(self) -> int:
        """Return all of them."""
        return sum(self.products.values()) + self.weighted


def multiplications(config: PyramidionConfig, lengths: Lengths) -> Multiplications:
    """Count the multiplications of a batch of full-length documents.

    What is done to single values (softmax, normalisation, activations, positions, a tournament's scores) is left out.

    Args:
        config: the model's shape.
        lengths: of the batch.

    Raises:
        UserError: a config that breaks a rule, a length below 1, or a kind that has no closed form.
    """
    lengths.check()
    model = outline(config, lengths.vocab_size)
    runs = list(encoder_runs(config, model.encoder, lengths.source))
    products: Counter[Part] = Counter()
    weighted = 0
    for run in runs:
        if isinstance(run, LayerRun):
            products.update(_layer(config, run))
        else:
            products[Part.POOLING] += _scoring(config, run)
            form = POOLING_FORMS[config.pooling]
            products[Part.POOLING] += form.products(run.length, run.pooled, config.embed_dim)
            weighted += form.weighted(run.length, run.pooled, config.embed_dim)
    products.update(_decoder(config, model.decoder, memory_length(model.encoder, runs, lengths.source), lengths))
    return Multiplications({part: lengths.batch * products[part] for part in Part}, lengths.batch * weighted)


def _layer(config: PyramidionConfig, run: LayerRun) -> dict[Part, int]:
    dim, heads = config.embed_dim, config.num_heads
    attention = _attention(run.layer)
    core = attention.attention
    attend = closed_form(ATTENTION_PRODUCTS, run.kind, "self-attention")
    of_keys = 1 if core.shares_query_key else 2
    return {
        Part.ENCODER_ATTENTION: run.blocks * attend(core, heads, dim // heads, run.queries, run.keys),
        Part.ENCODER_PROJECTIONS: run.blocks * (2 * run.queries + of_keys * run.keys) * dim**2,
        Part.ENCODER_FEED_FORWARD: run.blocks * run.queries * _feed_forward(config),
    }


def _attention(layer: Layer) -> SelfAttention | CrossAttention:
    return layer.function(SelfAttention) or _found(layer.function(CrossAttention))


def _found(attention: CrossAttention | None) -> CrossAttention:
    assert attention is not None
    return attention


def _feed_forward(config: PyramidionConfig) -> int:
    form = closed_form(FEED_FORWARD_FORMS, config.feed_forward, "feed-forward")
    return form.products(config.embed_dim, config.ffn_embed_dim)


def _scoring(config: PyramidionConfig, run: PoolerRun) -> int:
    if not POOLING.takes(config.pooling, "scorer"):
        return 0
    form = closed_form(SCORER_FORMS, config.scorer, "scorer")
    asked = form.asks(_attention(run.before.layer), run.before.blocks, run.before.keys)
    return run.length * form.products(config.embed_dim) + asked


def _decoder(config: PyramidionConfig, decoder: Decoder, memory: int, lengths: Lengths) -> dict[Part, int]:
    dim, heads, target, layers = config.embed_dim, config.num_heads, lengths.target, config.decoder_layers
    layer = cast(Layer, decoder.layers[0])
    back = _attention(layer).attention, heads, dim // heads
    across = _found(layer.function(CrossAttention)).attention, heads, dim // heads
    attend_across = closed_form(ATTENTION_PRODUCTS, config.cross_attention, "cross-attention")
    return {
        Part.DECODER_ATTENTION: layers * ATTENTION_PRODUCTS["full"](*back, target, target),
        Part.CROSS_ATTENTION: layers * attend_across(*across, target, memory),
        # queries, keys, values and output of self-attention; queries and output of cross-attention
        Part.DECODER_PROJECTIONS: layers * (4 + 2) * target * dim**2,
        Part.MEMORY_PROJECTIONS: layers * 2 * memory * dim**2,
        Part.DECODER_FEED_FORWARD: layers * target * _feed_forward(config),
        Part.OUTPUT: target * dim * lengths.vocab_size,
    }


def parameters(config: PyramidionConfig, vocab_size: int) -> int:
    """Count the parameters of a model; embeddings are shared with the output layer.

    Args:
        config: the model's shape.
        vocab_size: V, specials included.

    Raises:
        UserError: a kind that has no closed form.
    """
    dim = config.embed_dim
    matrix, norm = dim**2 + dim, 2 * dim
    feed_forward = closed_form(FEED_FORWARD_FORMS, config.feed_forward, "feed-forward").parameters(
        dim, config.ffn_embed_dim
    )
    of_attention = {kind: (3 if ATTENTION[kind].shares_query_key else 4) * matrix for kind in ATTENTION.names}
    encoder_layer = of_attention[config.self_attention] + feed_forward + 2 * norm
    decoder_layer = of_attention["full"] + of_attention[config.cross_attention] + feed_forward + 3 * norm
    pooled = len(parse_pooling_lengths(config.pooling_lengths, config.encoder_layers))
    scorer = 0
    if pooled and POOLING.takes(config.pooling, "scorer"):
        scorer = closed_form(SCORER_FORMS, config.scorer, "scorer").parameters(dim)
    return (
        vocab_size * dim
        + config.encoder_layers * encoder_layer
        + pooled * scorer
        + config.decoder_layers * decoder_layer
        + (2 * norm if config.normalize_before else 0)
    )
