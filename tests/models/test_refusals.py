"""What no model can be is refused in one sentence that names the field, the rule and the value."""

from collections.abc import Callable
from typing import Any

import pytest
from small_language_models import fields as language_model_fields

from pyramidions.base.errors import UserError
from pyramidions.models import (
    ExtractorConfig,
    PyramidionConfig,
    build,
    build_extractor,
    build_language_model,
    extractor_preset,
    language_model_preset,
    preset,
)
from pyramidions.models.config import check_lengths, config_as
from pyramidions.models.freezing import freeze
from pyramidions.models.notation import parse_part, parse_parts
from pyramidions.models.pooling_warmup import PoolingWarmup

Call = Callable[[], object]
SIZE = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 4, "max_source_positions": 64}
MEAN = {"pooling": "mean", "pooling_lengths": "8,None"}
WINDOW = {"self_attention": "sliding_window(window=4)"}


def whole(name: str = "vanilla", marker: int | None = 4, vocab_size: int = 50, **fields: Any) -> Call:
    return lambda: build(preset(name, **{**SIZE, **fields}), vocab_size, marker_idx=marker)


def extractor(**fields: Any) -> Call:
    return lambda: build_extractor(extractor_preset("extractor", **{**SIZE, **fields}), 50, marker_idx=4)


def language_model(**changes: Any) -> Call:
    name, fields = language_model_fields("whitespace", **changes)
    return lambda: build_language_model(language_model_preset(name, **fields), 12, space_idx=4)


def frozen(parts: str, **fields: Any) -> Call:
    return lambda: freeze(build(preset("vanilla", **{**SIZE, **fields}), 50), parts)


def warmed(**fields: Any) -> Call:
    return lambda: PoolingWarmup(build(preset("vanilla", **{**SIZE, "pooling_lengths": "16,4", **fields}), 50), 64, 9)


def told(call: Call) -> str:
    with pytest.raises(UserError) as refusal:
        call()
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


LAYERS = [
    (whole(self_attention="blockwise(block_size=0)"), "`block_size` must be at least 1, but is 0."),
    (whole(self_attention="fulll"), "but is 'fulll'."),
    (whole(self_attention="full | hepos"), "must be a kind by which a sequence reads itself (adaptive_span, "),
    (whole(self_attention="full | full | full"), "or one per encoder layer with | in between, but has 3 for 2: 'full"),
    (whole(self_attention="full(block_size=5)"), "(attention 'full') has no option 'block_size'; it knows none."),
    (whole(cross_attention="blockwise"), "`cross_attention` must be a kind that reads another sequence"),
    (whole(cross_attention="hepos(stride=3)"), "`num_heads` (4) must be divisible by the `stride` of hepos (3)."),
    (
        whole(decoder_self_attention="full | blockwise"),
        "must be a kind that writes token by token (bucketed, full, lsh, relative, relative_window, sliding_window)",
    ),
    (whole(decoder_self_attention="full | lsh | full"), "or one per decoder layer with | in between, but has 3 for 2"),
    (whole(encoder_layers=0), "`encoder_layers` must be from 1 to 1,000, but is 0."),
    (whole(dropout=1.0), "`dropout` must be at least 0 and below 1, but is 1.0."),
    (whole(decoding_beam=0), "`decoding_beam` must be from 1 to 1,024, but is 0."),
    (whole(stack="plain(depth=3)"), "has no option 'depth'; it knows none."),
    (whole(stack="reversible"), "`stack` reversible needs `normalize_before` to be true"),
    (whole(output="tide"), "`output` must be one of multiplicative, pointer, tied, untied, but is 'tide'."),
    (whole(output="tied(depth=3)"), "has no option 'depth'; it knows none."),
    (whole(encoder_positions="none(first=1)"), "must be none without options, but is none(first=1)."),
    (whole(recurrence="gru"), "`recurrence` must be one of none, sru, but is 'gru'"),
    (whole(recurrence="sru | none"), "or one per layer with | in between, but has 2 for 4: 'sru | none'."),
    (whole(recurrence="sru", self_attention="segments"), "must be 'none' in layers that stay inside units of the text"),
    (whole(vocab_size=1), "`vocab_size` must be above 1, the padding, but is 1."),
    (whole("vanila"), "but is 'vanila'"),
    (whole(embed_dims=3), "The model has no field 'embed_dims'; did you mean 'embed_dim'?"),
    (extractor(feed_forward="dense | dense"), "or one per layer with | in between, but has 2 for 4"),
    (extractor(decoder_layers=2), "The model has no field 'decoder_layers'"),
    (lambda: extractor_preset("vanilla"), "must be one of extractor, extractor_pyramidion, extractor_pointer, but is"),
    (
        lambda: build_extractor(ExtractorConfig(**SIZE, scorer="query", pooling_lengths="32,16"), 50, 4),  # type: ignore[arg-type]
        "An extractor reads no queries: `scorer` must not ask for them.",
    ),
]
POOLINGS = [
    (whole(pooling_lengths="4,8"), "`pooling_lengths` must not grow, but layer 2 hands on 8 after 4."),
    (whole(pooling_lengths="None"), "must have one entry per encoder layer, but has 1 for 2: 'None'."),
    (whole(pooling_lengths="0,None"), "must be positive integers up to 16,777,216 or None, but layer 1 has '0'."),
    (whole(pooling="soft_topk(base=2)"), "but nothing is pooled"),
    (whole(pooling="mean", pooling_lengths="8,4", scorer="random"), "`pooling` 'mean' takes no scorer."),
    (
        whole(pooling="mean | soft_topk", pooling_lengths="8,4", scorer="random | linear"),
        "but `pooling` 'mean' takes no scorer: give it linear, without options.",
    ),
    (extractor(scorer="random"), "`scorer` is 'random', but `pooling` 'markers' takes no scorer."),
    (
        whole(scorer="attention", pooling_lengths="4,4", self_attention="efficient"),
        "`scorer` 'attention' needs attention that tells what each position received",
    ),
    (
        whole(scorer="query", pooling="gumbel_topk", pooling_lengths="32,16"),
        "needs a pooling that keeps the query's vectors, such as soft_topk, but `pooling` is 'gumbel_topk'.",
    ),
    (
        whole(scorer="linear | query", pooling="max | soft_topk", pooling_lengths="32,16", upsampling="none"),
        "`scorer` 'query' must follow poolings that tell what their vectors are made of, but follows 'max'.",
    ),
    (whole(pooling="funnel", pooling_lengths="None,4"), "must name one length, after a layer that another one"),
    (
        whole(pooling="funnel", pooling_lengths="4,None", self_attention="efficient"),
        "Funnel pooling needs `self_attention` blockwise or full, but it is 'efficient'.",
    ),
    (
        whole("blockwise", pooling="funnel", pooling_lengths="4,None", max_source_positions=12),
        "The block size of funnel pooling (512) must be divisible by its window (3).",
    ),
    (whole(upsampling="repeat"), "`upsampling` is 'repeat', but nothing is pooled"),
    (whole(upsampling="repeat", pooling_lengths="8,None"), "`upsampling` 'repeat' needs pooling over windows"),
    (
        whole(upsampling="repeat", pooling="mean", pooling_lengths="None,8"),
        "`upsampling` 'repeat' needs a layer after the last pooling",
    ),
    (whole(pooling="funnel | mean", pooling_lengths="8,4"), "`upsampling` must be given"),
    (whole(**MEAN, upsampling="top_down(layers=9)"), "needs a layer between the last pooling and the"),
    (whole(**MEAN, upsampling="top_down(layers=0)"), "`layers` must be at least 1, but is 0."),
    (warmed(pooling="mean"), "--pooling-warmup is 9, but the model has no pooling by a top-k."),
    (
        warmed(self_attention="linformer(compressed=4)"),
        "`self_attention` linformer has weights for 16 of 64 positions",
    ),
    (
        warmed(decoder="concatenated(longest_memory=32)"),
        "whole documents of up to 64 tokens on, but `decoder` reads at most 32 vectors",
    ),
]
UNITS = [
    (whole("hat", marker=None, max_source_positions=64), "needs a vocabulary with markers"),
    (whole(marker=None, self_attention="segments"), "`self_attention` 'segments' needs a vocabulary with markers"),
    (whole(marker=None, cross_attention="discourse"), "`cross_attention` 'discourse' needs a vocabulary with markers"),
    (whole(marker=None, pooling="markers", pooling_lengths="8,None"), "`pooling` 'markers' needs a vocabulary with"),
    (whole(marker=None, **WINDOW, global_markers=True), "`global_markers` needs a vocabulary with markers: "),
    (
        whole(self_attention="segments", pooling="max", pooling_lengths="8,None"),
        "'segments' must not follow `pooling` 'max', which loses",
    ),
    (
        whole(self_attention="segments", pooling="markers", pooling_lengths="8,None"),
        "'segments' must not follow `pooling` 'markers', after which each vector is",
    ),
    (
        whole(cross_attention="discourse", pooling="max", pooling_lengths="8,None"),
        "`cross_attention` 'discourse' must not follow `pooling` 'max', which loses",
    ),
    (
        whole(self_attention="segments", encoder_projections="conv"),
        "SegmentsAttention stays inside units of the text, so its projections must read each position alone, but "
        "ConvProjections reads 2 before it.",
    ),
]
GLOBAL = [
    (whole(global_tokens=1), "`global_tokens` needs `self_attention` block_global or sliding_window, but it is 'full'"),
    (
        whole(global_query=True),
        "`global_query` needs `self_attention` block_global or sliding_window, but it is 'full'",
    ),
    (whole(global_projections="dense"), "`global_projections` is 'dense', but no token is global: give "),
    (whole(**WINDOW, global_tokens=-1), "`global_tokens` must be from 0 to 16,777,216, but is -1."),
    (
        whole(**WINDOW, global_tokens=1, pooling="max", pooling_lengths="12,None"),
        "Global tokens need poolings that tell what their vectors are made of, but 'max' does not.",
    ),
    (
        whole(self_attention="sliding_window(window=4) | full", global_vectors=3),
        "must be a kind that shows global tokens to all (block_global, sliding_window), but is 'full'.",
    ),
    (whole(**WINDOW, global_vectors=3, recurrence="sru"), "`recurrence` must be 'none' with `global_vectors`, but is"),
    (
        whole(**WINDOW, global_vectors=3, encoder_projections="conv"),
        "`encoder_projections` must read each position alone with `global_vectors`, but read 2 before it.",
    ),
    (
        whole(**WINDOW, global_tokens=1, global_projections="dense", encoder_projections="multiplicative"),
        "`global_projections` start as copies of `encoder_projections`, so kind and options must be the same, but "
        "'dense' is not 'multiplicative'.",
    ),
    (
        whole(**WINDOW, global_tokens=1, global_projections="conv", encoder_projections="conv"),
        "`global_projections` must read each position alone, but ConvProjections",
    ),
]
DECODERS = [
    (whole(memories="1"), "must be `last` and numbers of encoder layers, from 1 to 2, each once, but is '1'"),
    (whole(memories="1,last", cross_attention="full; full; full"), "but has 3 for 2 of `memories`"),
    (
        whole(memories="1,last", stack="reversible", normalize_before=True),
        "`memories` must name layers that a pooling follows if `stack` is 'reversible', but names 1",
    ),
    (
        whole(memories="2,last", pooling="funnel", pooling_lengths="8,None"),
        "`memories` must not name layer 2, which funnel pooling runs",
    ),
    (
        whole(pooling="delete_gate", pooling_lengths="8,None", cross_attention="hepos | discourse"),
        "`cross_attention` after `pooling` delete_gate must be a kind that adds to the scores of a key",
    ),
    (whole(decoder="concatenated", pooling="delete_gate", pooling_lengths="8,None"), "needs a `decoder` with cross-"),
    (whole(output="pointer", pooling="max", pooling_lengths="8,None"), "`output` pointer needs a `pooling` that tells"),
    (
        whole(decoder="concatenated", max_source_positions=8192),
        "at most 4096 (`longest_memory`), but `pooling_lengths` leaves 8192.",
    ),
    (
        whole(decoder="concatenated", memories="1,last"),
        "`memories` must be 'last' if `decoder` is 'concatenated', which has no cross-attention, but is '1,last'.",
    ),
    (whole(decoder="concatenated", cross_attention="hepos"), "must be 'full' if `decoder` is 'concatenated'"),
    (whole(decoder="concatenated(attention_layers=0)"), "`attention_layers` must be from 1 to"),
    (
        whole(decoder="concatenated(depth=2)"),
        "has no option 'depth'; it knows attention_layers, longest_memory, reads_streams.",
    ),
    (
        whole(
            decoder="concatenated(reads_streams=True)",
            stack="reversible",
            normalize_before=True,
            pooling_lengths="None,64",
        ),
        "`reads_streams` of the decoder needs layers after the last pooling of the encoder.",
    ),
]
LANGUAGE_MODELS = [
    (language_model(layers="2,8"), "`layers` must be one number, three or five"),
    (language_model(layers="0,0,0"), "and from 1 to 1,000 in all"),
    (language_model(layers="12"), "must be none where `layers` is one number, '12', but is 'whitespace'."),
    (language_model(layers="1,1,1,1,1"), "must be a kind that reads no tokens (fixed, gumbel, routing), but is"),
    (language_model(boundaries="fixed | fixed"), "or one per hourglass with | in between, but has 2 for 1"),
    (language_model(boundaries="none(factor=3)"), "`boundaries` must be none without options"),
    (language_model(boundaries="fixed(factor=1)"), "`factor` must be at least 2, but is 1."),
    (
        language_model(boundaries="gumbel", segments="last"),
        "GumbelBoundaries learns from means of segments, but `segments`",
    ),
    (language_model(boundaries="routing"), "RoutingBoundaries learns from smoothed segments, but `upsampling` is by"),
    (language_model(upsampling="smoothing"), "reads probabilities of boundaries, but `boundaries` are White"),
    (
        language_model(self_attention="linformer"),
        "`self_attention` of a language model must be a kind that writes token by",
    ),
    (language_model(embed_dim=9, num_heads=3), "`embed_dim` must be even for sinusoids of distances, but is 9."),
    (language_model(dropout=1.0), "`dropout` must be at least 0 and below 1, but is 1.0."),
    (
        lambda: build_language_model(language_model_preset("hourglass_whitespace"), 27),
        "`boundaries` whitespace needs a vocabulary with a space",
    ),
    (lambda: language_model_preset("hourglass"), "The architecture must be one of hourglass_vanilla, "),
]
VALUES = [
    (lambda: config_as(PyramidionConfig, {"embed_dim": True}), "`embed_dim` must be a whole number, but is True."),
    (lambda: config_as(PyramidionConfig, {"dropout": [0.1]}), "`dropout` must be a number, but is a list."),
    (lambda: config_as(PyramidionConfig, {"pooling_lengths": 5}), "`pooling_lengths` must be a text or None, but is 5"),
    (lambda: config_as(PyramidionConfig, {7: 8}), "The model has no field 7."),  # type: ignore[dict-item]
    (lambda: check_lengths(1, 8), "`max_source_positions` must be a whole number from 2 to 16,777,216, but is 1."),
    (lambda: check_lengths(8, True), "`max_target_positions` must be a whole number from 2 to 16,777,216, but is True"),
    (lambda: parse_part("field", "a | b"), "`field` must be one part, but is 'a | b'"),
    (lambda: parse_parts("field", "a("), "`field` has a '(' that is not closed: 'a('."),
    (lambda: parse_parts("field", "a(x=[1)]"), "`field` has a ')' that closes nothing: 'a(x=[1)]'."),
    (lambda: parse_parts("field", "a(x=1)(y=2)"), "must be like kind(option=value), but is 'a(x=1)(y=2)'."),
    (lambda: parse_parts("field", "a(x=1, x=2)"), "`field` must name each option once, but is 'a(x=1, x=2)'."),
    (lambda: parse_parts("field", "a(1)"), "must name each option, as in a(option=value), but is 'a(1)'."),
    (lambda: parse_parts("field", "a(x=y)"), "The option 'x' in `field` must be a number, a text in quotes, True, Fal"),
    (lambda: parse_parts("field", "a" * 100_001), "`field` must have at most 100,000 characters, but has 100,001."),
    (
        lambda: preset("vanilla", self_attention="sliding_window(window=2)").scaled(lengths=4),
        "`self_attention` must be at least 4 at this scale, but is 2.",
    ),
    (lambda: preset("vanilla").replace(poling="mean"), "The model has no field 'poling'; did you mean 'pooling'"),
    (frozen("encoder.1-2"), "--freeze names encoder.1-2, but the encoder has 2 layers, counted from 0."),
    (frozen("encoders"), "--freeze must name embeddings, encoder, "),
    (frozen("poolers"), "--freeze names poolers, but the model has none."),
    (frozen("embeddings,encoder,decoder"), "--freeze must leave weights to train, but "),
]


@pytest.mark.parametrize(
    ("call", "sentence"), [*LAYERS, *POOLINGS, *UNITS, *GLOBAL, *DECODERS, *LANGUAGE_MODELS, *VALUES]
)
def test_a_wrong_argument_is_named(call: Call, sentence: str) -> None:
    assert sentence in told(call)
