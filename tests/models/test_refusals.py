"""What no model can be is refused in one sentence that names the field, the rule and the value."""

from collections.abc import Callable
from typing import Any

import pytest
from small_language_models import fields as language_model_fields

from pyramidions.base.errors import UserError
from pyramidions.base.notation import parse_options, parse_part, parse_parts
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
from pyramidions.models.stages import parse_pooling_lengths
from pyramidions.models.training import PoolingWarmup, freeze

Call = Callable[[], object]
SIZE = {"embed_dim": 16, "ffn_embed_dim": 32, "num_heads": 4, "max_source_positions": 64}
MEAN = {"pooling": "mean", "pooling_lengths": "8,None"}
MAX = {"pooling": "max", "pooling_lengths": "8,None"}
GATE = {"pooling": "delete_gate", "pooling_lengths": "8,None"}
MARKED = {"pooling": "markers", "pooling_lengths": "8,None"}
FUNNEL = {"pooling": "funnel", "pooling_lengths": "4,None"}
WINDOW = {"self_attention": "sliding_window(window=4)"}
REVERSIBLE = {"stack": "reversible", "normalize_before": True}


TWO = {"encoder_layers": 2, "self_attention": "full"}


def whole(name: str = "vanilla", marker: int | None = 4, vocab_size: int = 50, **fields: Any) -> Call:
    return lambda: build(preset(name, **{**SIZE, **fields}), vocab_size, marker_idx=marker)


def extractor(marker: int | None = 4, **fields: Any) -> Call:
    return lambda: build_extractor(extractor_preset("extractor", **{**SIZE, **fields}), 50, marker_idx=marker)


def language_model(**changes: Any) -> Call:
    name, fields = language_model_fields("whitespace", **changes)
    return lambda: build_language_model(language_model_preset(name, **fields), 12, space_idx=4)


def parsed(text: str) -> Call:
    return lambda: parse_parts("field", text)


def lengths(text: str) -> Call:
    return lambda: parse_pooling_lengths(text, 3)


def options(text: str) -> Call:
    return lambda: parse_options("field", text)


def config(**fields: Any) -> Call:
    return lambda: config_as(PyramidionConfig, fields)


def frozen(parts: str, **fields: Any) -> Call:
    return lambda: freeze(build(preset("vanilla", **{**SIZE, **fields}), 50), parts)


def warmed(**fields: Any) -> Call:
    return lambda: PoolingWarmup(build(preset("vanilla", **{**SIZE, "pooling_lengths": "16,4", **fields}), 50), 64, 9)


#: what is refused, the field or option that is named, and its value
LAYERS = [
    (whole(self_attention="fulll"), "self_attention", "but is 'fulll'."),
    (whole(self_attention="full | full | full"), "self_attention", "but has 3 for 2: 'full | full | full'."),
    (whole(self_attention="full(block_size=5)"), "attention 'full'", "no option 'block_size'; it knows none."),
    (whole(cross_attention="blockwise"), "cross_attention", "but is 'blockwise'."),
    (whole(cross_attention="hepos(stride=3)"), "num_heads", "`stride` of hepos (3)."),
    (whole(decoder_self_attention="full | blockwise"), "decoder_self_attention", "but is 'blockwise'."),
    (whole(encoder_layers=0), "encoder_layers", "but is 0."),
    (whole(dropout=1.0), "dropout", "but is 1.0."),
    (whole(stack="plain(depth=3)"), "stack 'plain'", "no option 'depth'; it knows none."),
    (whole(output="tide"), "output", "but is 'tide'."),
    (whole(output="tied(depth=3)"), "output 'tied'", "no option 'depth'; it knows none."),
    (whole(encoder_positions="none(first=1)"), "encoder_positions", "but is none(first=1)."),
    (whole(recurrence="gru"), "recurrence", "but is 'gru'."),
    (whole(recurrence="sru | none"), "recurrence", "but has 2 for 4: 'sru | none'."),
    (whole(recurrence="sru", self_attention="segments"), "recurrence", "but is 'sru'."),
    (whole(vocab_size=1), "vocab_size", "but is 1."),
    (whole("vanila"), "The architecture", "but is 'vanila'."),
    (whole(embed_dims=3), "field 'embed_dims'", "did you mean 'embed_dim'?"),
    (extractor(feed_forward="dense | dense"), "feed_forward", "but has 2 for 4: 'dense | dense'."),
    (extractor(decoder_layers=2), "field 'decoder_layers'", "did you mean 'encoder_layers'?"),
    (lambda: extractor_preset("vanilla"), "The architecture", "but is 'vanilla'."),
    (
        lambda: build_extractor(ExtractorConfig(**SIZE, scorer="query", pooling_lengths="32,16"), 50, 4),  # type: ignore[arg-type]
        *("scorer", "An extractor reads no queries"),
    ),
]
SCORED = {"scorer": "random | linear", "pooling": "mean | soft_topk", "pooling_lengths": "8,4"}
ASKED = {"scorer": "linear | query", "pooling": "max | soft_topk", "pooling_lengths": "32,16", "upsampling": "none"}
POOLINGS = [
    (whole(pooling_lengths="4,8"), "pooling_lengths", "layer 2 hands on 8 after 4."),
    (whole(pooling_lengths="None"), "pooling_lengths", "but has 1 for 2: 'None'."),
    (lengths("0,None,None"), "pooling_lengths", "but layer 1 has '0'."),
    (lengths("-4,None,None"), "pooling_lengths", "but layer 1 has '-4'."),
    (lengths("9999999999,None,None"), "pooling_lengths", "but layer 1 has '9999999999'."),
    (lengths("a,None,None"), "pooling_lengths", "but layer 1 has 'a'."),
    (whole(pooling="soft_topk(base=2)"), "pooling", "nothing is pooled: `pooling_lengths` is None."),
    (whole(**{**MEAN, "pooling_lengths": "8,4"}, scorer="random"), "scorer", "`pooling` 'mean' takes no scorer."),
    (whole(**SCORED), "scorer", "is 'random | linear', but `pooling` 'mean' takes no scorer"),
    (extractor(scorer="random"), "scorer", "`pooling` 'markers' takes no scorer."),
    (whole(scorer="attention", pooling_lengths="4,4", self_attention="efficient"), "scorer", "is 'efficient'."),
    (whole(scorer="attention", pooling_lengths="4,4", self_attention="linformer"), "scorer", "is 'linformer'."),
    (whole(scorer="query", pooling="gumbel_topk", pooling_lengths="32,16"), "scorer", "is 'gumbel_topk'."),
    (whole(**ASKED), "scorer", "follows 'max'."),
    (whole(pooling="funnel", pooling_lengths="None,4"), "pooling_lengths", "but is 'None,4'."),
    (whole(**FUNNEL, self_attention="efficient"), "self_attention", "but it is 'efficient'."),
    (whole(**FUNNEL, self_attention="lsh"), "self_attention", "but it is 'lsh'."),
    (whole("blockwise", **FUNNEL, max_source_positions=12), "block size of funnel", "(512) must be divisible by its"),
    (whole(upsampling="repeat"), "upsampling", "is 'repeat', but nothing is pooled"),
    (whole(upsampling="repeat", pooling_lengths="8,None"), "upsampling", "but `pooling` is 'soft_topk'."),
    (whole(**{**MEAN, "pooling_lengths": "None,8"}, upsampling="repeat"), "upsampling", "is 'None,8'."),
    (whole(pooling="funnel | mean", pooling_lengths="8,4"), "upsampling", "`pooling` 'funnel | mean' differ"),
    (whole(**MEAN, upsampling="top_down(layers=9)"), "upsampling", "9 encoder layers, but layer 1 of 2 pools."),
    (whole(**MEAN, upsampling="top_down(layers=0)"), "layers", "but is 0."),
    (whole(**GATE, self_attention="lsh"), "self_attention", "but is 'lsh'."),
    (whole(**GATE, cross_attention="hepos | discourse"), "cross_attention", "but is 'hepos'."),
    (whole(**GATE, decoder="concatenated"), "decoder", "but it is 'concatenated'."),
    (extractor(**MAX, **TWO), "pooling", "but 'max' does not."),
    (extractor(**FUNNEL, **TWO, upsampling="none"), "pooling", "but 'funnel' does not."),
    (extractor(pooling="max | markers", pooling_lengths="12,6", **TWO), "pooling", "'markers' must follow"),
    (extractor(**MARKED, upsampling="repeat", **TWO), "upsampling", "is 'markers'."),
    (warmed(pooling="mean"), "--pooling-warmup", "is 9, but the model has no pooling by a top-k."),
    (warmed(pooling_lengths=None), "--pooling-warmup", "is 9, but the model has no pooling by a top-k."),
    (warmed(self_attention="linformer(compressed=4)"), "--pooling-warmup", "linformer has weights for 16 of 64"),
    (warmed(decoder="concatenated(longest_memory=32)"), "--pooling-warmup", "64 tokens on, but `decoder` reads at"),
]
UNITS = [
    (whole("hat", marker=None, max_source_positions=64), "pooling", "'markers' needs a vocabulary with markers"),
    (whole(marker=None, self_attention="segments"), "self_attention", "'segments' needs a vocabulary with markers"),
    (whole(marker=None, cross_attention="discourse"), "cross_attention", "'discourse' needs a vocabulary with"),
    (whole(marker=None, **MARKED), "pooling", "'markers' needs a vocabulary with markers"),
    (whole(marker=None, **WINDOW, global_markers=True), "global_markers", "needs a vocabulary with markers"),
    (extractor(marker=None), "a vocabulary", "--sentence-markers"),
    (whole(self_attention="segments", **MARKED), "self_attention", "must not follow `pooling` 'markers'"),
    (whole(cross_attention="discourse", **MAX), "cross_attention", "must not follow `pooling` 'max'"),
    (
        whole(cross_attention="discourse", **MAX, memories="1,last"),
        "cross_attention",
        "must not follow `pooling` 'max'",
    ),
]
GLOBAL = [
    (whole(global_query=True), "global_query", "but it is 'full'."),
    (whole(global_projections="dense"), "global_projections", "is 'dense', but no token is global"),
    (whole(**WINDOW, global_tokens=-1), "global_tokens", "but is -1."),
    (whole(**WINDOW, global_tokens=1, **MAX), "Global tokens", "but 'max' does not."),
    (whole(self_attention="sliding_window(window=4) | full", global_vectors=3), "self_attention", "but is 'full'."),
    (whole(**WINDOW, global_vectors=3, recurrence="sru"), "recurrence", "but is 'sru'."),
    (whole(**WINDOW, global_vectors=3, encoder_projections="conv"), "encoder_projections", "but read 2 before it."),
    (
        whole(
            **WINDOW,
            global_tokens=1,
            encoder_projections="multiplicative",
            global_projections="multiplicative(modules=4)",
        ),
        *("global_projections", "is not 'multiplicative'."),
    ),
    (
        whole(**WINDOW, global_tokens=1, global_projections="conv", encoder_projections="conv"),
        *("global_projections", "ConvProjections reads 2 before it."),
    ),
]
JOINED = {"decoder": "concatenated"}
HOURGLASS = {"encoder_layers": 3, "pooling_lengths": "20,None,None", "cross_attention": "full; full"}
DECODERS = [
    (whole(memories="1"), "memories", "but is '1'."),
    (whole(memories="3,last"), "memories", "but is '3,last'."),
    (whole(memories="last,1,1"), "memories", "but is 'last,1,1'."),
    (whole(memories="-1,last"), "memories", "but is '-1,last'."),
    (whole(memories="1,last", cross_attention="full; full; full"), "cross_attention", "but has 3 for 2 of `memories`"),
    (whole(memories="1,last", **REVERSIBLE), "memories", "but names 1."),
    (whole(memories="2,last", pooling="funnel", pooling_lengths="8,None"), "memories", "must not name layer 2"),
    (whole(output="pointer", **MAX), "pooling", "but is given 'max'."),
    (whole(output="pointer", **HOURGLASS, pooling="max", upsampling="repeat", memories="2,last"), "pooling", "'max'."),
    (whole(output="pointer", **HOURGLASS, pooling="funnel", memories="3,last"), "pooling", "but is given 'funnel'."),
    (whole(**JOINED, max_source_positions=8192), "longest_memory", "but `pooling_lengths` leaves 8192."),
    (whole(**JOINED, memories="1,last"), "memories", "but is '1,last'."),
    (whole(**JOINED, cross_attention="hepos"), "cross_attention", "but is 'hepos'."),
    (whole(decoder="concatenated(attention_layers=0)"), "attention_layers", "but is 0."),
    (whole(decoder="concatenated(depth=2)"), "decoder 'concatenated'", "no option 'depth'; it knows attention_lay"),
    (
        whole(decoder="concatenated(reads_streams=True)", **REVERSIBLE, pooling_lengths="None,64"),
        *("reads_streams", "layers after the last pooling"),
    ),
]
LANGUAGE_MODELS = [
    (language_model(layers="2,8"), "layers", "but is '2,8'."),
    (language_model(layers="0,0,0"), "layers", "but is '0,0,0'."),
    (language_model(layers="12"), "boundaries", "but is 'whitespace'."),
    (language_model(layers="1,1,1,1,1"), "boundaries", "but is 'whitespace'."),
    (language_model(boundaries="fixed | fixed"), "boundaries", "but has 2 for 1: 'fixed | fixed'."),
    (language_model(boundaries="none(factor=3)"), "boundaries", "but is none(factor=3)."),
    (language_model(boundaries="fixed(factor=1)"), "factor", "but is 1."),
    (language_model(boundaries="gumbel", segments="last"), "segments", "pooled by LastSegmentPooler."),
    (language_model(boundaries="routing"), "upsampling", "is by RepeatedSegments."),
    (language_model(upsampling="smoothing"), "boundaries", "are WhitespaceBoundaries."),
    (language_model(self_attention="linformer"), "self_attention", "but is 'linformer'."),
    (language_model(embed_dim=9, num_heads=3), "embed_dim", "but is 9."),
    (language_model(dropout=1.0), "dropout", "but is 1.0."),
    (lambda: build_language_model(language_model_preset("hourglass_whitespace"), 27), "boundaries", "with a space"),
    (lambda: language_model_preset("hourglass"), "The architecture", "but is 'hourglass'."),
]
VALUES = [
    (config(dropout=[0.1]), "dropout", "but is a list."),
    (config(pooling_lengths=5), "pooling_lengths", "but is 5."),
    (lambda: config_as(PyramidionConfig, {7: 8}), "The model", "has no field 7."),  # type: ignore[dict-item]
    *((lambda n=n: check_lengths(n, 8), "max_source_positions", f"but is {n}") for n in (1, 10**15, None, 8.5)),
    *((lambda n=n: check_lengths(8, n), "max_target_positions", f"but is {n!r}") for n in (True, "8", float("nan"))),
    *(
        (options(text), "field", text)
        for text in ("beam", "beam=", '{"beam": 4}', "beam=4)(x=1", "beam=4) # x", "a=nan")
    ),
    (lambda: parse_part("field", "a | b"), "field", "but is 'a | b'."),
    (lambda: parse_part("field", "a; b"), "field", "but is 'a; b'."),
    (parsed("a("), "field", "is not closed: 'a('."),
    (parsed("a)"), "field", "closes nothing: 'a)'."),
    (parsed("a(x=[1)]"), "field", "closes nothing: 'a(x=[1)]'."),
    (parsed("a(x=1)(y=2)"), "field", "but is 'a(x=1)(y=2)'."),
    (parsed("a(x=1, x=2)"), "field", "but is 'a(x=1, x=2)'."),
    (parsed("a(1)"), "field", "but is 'a(1)'."),
    *((parsed(text), "field", text) for text in ("a(x='1)", "a(x=1) b", "a(x 1)", "a(**{'x': 1})", "a(x=y)")),
    *((parsed(text), "field", text) for text in ("a(x=open('f'))", "a(x=1e999)", "a(x=2j)", "a(x=b'1')")),
    *((parsed(text), "field", "a(x=") for text in ("a(x='\n')", "a(x=1\0)", f"a(x={10**18})", f"a(x={'9' * 5000})")),
    (parsed(f"a(x={'[' * 5000}{']' * 5000})"), "field", "a(x="),
    (parsed("a" * 100_001), "field", "but has 100,001."),
    (
        lambda: preset("vanilla", self_attention="sliding_window(window=2)").scaled(lengths=4),
        "self_attention",
        "but is 2.",
    ),
    (lambda: preset("vanilla").replace(poling="mean"), "field 'poling'", "did you mean 'pooling'?"),
    (frozen("encoder.1-2"), "--freeze", "names encoder.1-2, but the encoder has 2 layers"),
    *((frozen(part), "--freeze", part) for part in ("encoders", "encoder.2", "encoder.1-0", "encoder.-1")),
    (frozen("encoder,"), "--freeze", "''"),
    (frozen("poolers"), "--freeze", "names poolers, but the model has none."),
    (frozen("embeddings,encoder,decoder"), "--freeze", "embeddings,encoder,decoder are all of the model."),
    (lambda: freeze(extractor()(), "decoder.0"), "--freeze", "names decoder.0"),
]


@pytest.mark.parametrize(
    ("call", "field", "value"), [*LAYERS, *POOLINGS, *UNITS, *GLOBAL, *DECODERS, *LANGUAGE_MODELS, *VALUES]
)
def test_a_refusal_names_the_field_and_its_value(call: Call, field: str, value: str) -> None:
    with pytest.raises(UserError) as refusal:
        call()
    message = str(refusal.value)
    assert "\n" not in message and len(message) < 2000
    assert (f"`{field}`" if field.isidentifier() else field) in message
    assert value in message
