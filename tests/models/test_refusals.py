"""What no model can be is refused by the field, the rule and the value; tests/bad_input has what `cost` refuses."""

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
MAX = {"pooling": "max", "pooling_lengths": "8,None"}
MARKED = {"pooling": "markers", "pooling_lengths": "8,None"}
FUNNEL = {"pooling": "funnel", "pooling_lengths": "4,None"}
WINDOW = {"self_attention": "sliding_window(window=4)"}


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
    (whole(vocab_size=1), "vocab_size", "but is 1."),
    (whole("vanila"), "The architecture", "but is 'vanila'."),
    (extractor(feed_forward="dense | dense"), "feed_forward", "but has 2 for 4: 'dense | dense'."),
    (extractor(decoder_layers=2), "field 'decoder_layers'", "did you mean 'encoder_layers'?"),
    (lambda: extractor_preset("vanilla"), "The architecture", "but is 'vanilla'."),
    (
        lambda: build_extractor(ExtractorConfig(**SIZE, scorer="query", pooling_lengths="32,16"), 50, 4),  # type: ignore[arg-type]
        *("scorer", "An extractor reads no queries"),
    ),
]
POOLINGS = [
    (lengths("0,None,None"), "pooling_lengths", "but layer 1 has '0'."),
    (lengths("-4,None,None"), "pooling_lengths", "but layer 1 has '-4'."),
    (lengths("9999999999,None,None"), "pooling_lengths", "but layer 1 has '9999999999'."),
    (lengths("a,None,None"), "pooling_lengths", "but layer 1 has 'a'."),
    (extractor(scorer="random"), "scorer", "`pooling` 'markers' takes no scorer."),
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


@pytest.mark.parametrize(("call", "field", "value"), [*LAYERS, *POOLINGS, *UNITS, *LANGUAGE_MODELS, *VALUES])
def test_a_refusal_names_the_field_and_its_value(call: Call, field: str, value: str) -> None:
    with pytest.raises(UserError) as refusal:
        call()
    message = str(refusal.value)
    assert "\n" not in message and len(message) < 2000
    assert (f"`{field}`" if field.isidentifier() else field) in message
    assert value in message
